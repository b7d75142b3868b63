// Search without a server: browsers start no worker from a file, so its script runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.scope = frame.contentWindow
      this.scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = frame.contentDocument.createElement("script")
      this.loaded = new Promise(resolve => script.addEventListener("load", resolve))
      script.src = url
      frame.contentDocument.body.appendChild(script)
    }

    postMessage(data) {
      this.loaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
