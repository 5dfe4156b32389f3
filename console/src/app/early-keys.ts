/** Buffers keys typed between the request for a dialog and its display, because its code may have to be loaded first. */
export class EarlyKeys {
  #typed = ''
  #isOn = false

  /** Starts to buffer typed keys. */
  start(): void {
    if (this.#isOn) return
    this.#isOn = true
    window.addEventListener('keydown', this.#note, { capture: true })
  }

  /** Stops buffering, and returns the typed text. */
  take(): string {
    const typed = this.#typed
    this.#typed = ''
    this.#isOn = false
    window.removeEventListener('keydown', this.#note, { capture: true })
    return typed
  }

  readonly #note = (event: KeyboardEvent): void => {
    const { key } = event
    if (key === 'Escape') this.take()
    if (key.length > 1 || event.ctrlKey || event.metaKey || event.altKey) return
    this.#typed += key
    event.preventDefault()
    event.stopPropagation()
  }
}
