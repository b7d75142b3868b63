"""Storages of studies: memory, a SQLite file, a PostgreSQL database.

Read in this order:

protocol                             rows, and what a storage does with them
memory                               the simplest one
registry, address                    the storage of ``storage=``
sql                                  a study in a database, over ``tables``, ``attempts`` and ``database``
sqlite, postgres                     a file and a server, with ``lock`` and ``spool``
checks, compare, listings, versions  damage, and other studies
"""
