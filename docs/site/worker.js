// Lets the search work on pages opened from disk, where browsers refuse workers: runs the worker's script in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inner = this.frame.contentWindow
      inner.postMessage = data => {
        const copy = structuredClone(data)
        setTimeout(() => this.onmessage?.({ data: copy }))
      }
      const script = inner.document.createElement("script")
      script.src = new URL(url, location.href).href
      script.onerror = event => this.onerror?.(event)
      this.loaded = new Promise(done => (script.onload = done))
      inner.document.body.append(script)
    }
    postMessage(message) {
      const data = structuredClone(message)
      this.loaded.then(() => this.frame.contentWindow?.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
