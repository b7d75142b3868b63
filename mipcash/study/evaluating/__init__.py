"""Calls of the objective: in the calling thread, in threads, in processes and in executors.

Read in this order:

evaluation                  one call
raised                      its exceptions
pool                        concurrent calls
processes, worker, allowed  worker processes with limits on time and memory
"""
