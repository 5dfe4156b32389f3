import type { Page } from 'playwright-core'

/** Presses of Tab after which a control counts as unreachable: more than any page has stops. */
const MAX_TABS = 150

/** The control that has the focus, as a user finds it. */
interface Stop {
  readonly name: string
  /** Why the user does not see the focus; `null`: it is seen. */
  readonly hidden: string | null
}

/**
 * The name of the focused control, and whether its focus is seen: in the window, not below something else, and with an outline,
 * a ring, or the border that fields have with the focus only; the look is judged once for each element. As a string: this file
 * is compiled for Node.js.
 */
const STOP = `(() => {
  const at = document.activeElement
  if (at === null || at === document.body) return { name: '', hidden: null }
  const text = (element) => element.textContent.replace(/\\s+/g, ' ').trim()
  const labels = [...(at.labels ?? [])].map(text).join(' ')
  const name = at.getAttribute('aria-label') ?? (labels || at.getAttribute('placeholder') || text(at))
  // The page itself has the focus after the focused element was removed with the previous page.
  if (at.id === 'content') return { name: '', hidden: null }
  // A notification that closes moves out of the window with its button.
  if (at.closest('[role="alert"]') !== null) return { name, hidden: null }
  const box = at.getBoundingClientRect()
  const middle = [box.left + box.width / 2, box.top + Math.min(box.height, innerHeight) / 2]
  if (middle[0] < 0 || middle[0] > innerWidth || middle[1] < 0 || middle[1] > innerHeight)
    return { name, hidden: 'outside of the window' }
  const known = (window.knownStops ??= new WeakSet())
  if (known.has(at)) return { name, hidden: null }
  known.add(at)
  const { outlineStyle, outlineWidth } = getComputedStyle(at)
  if (outlineStyle !== 'none' && outlineWidth !== '0px') return { name, hidden: null }
  const row = document.getElementById(at.getAttribute('aria-activedescendant') ?? '')
  const around = [at, row?.firstElementChild, at.nextElementSibling, at.parentElement, at.parentElement?.parentElement].filter(Boolean)
  const looks = () => around.map((one) => getComputedStyle(one)).map((look) => look.borderColor + look.boxShadow + look.outline)
  const focused = looks()
  at.blur()
  const blurred = looks()
  at.focus({ preventScroll: true })
  const isSeen = focused.some((look, index) => look !== blurred[index])
  return { name, hidden: isSeen ? null : 'without a mark of the focus' }
})()`

/** A user who has a keyboard only. */
export class KeyboardUser {
  readonly #page: Page

  constructor(page: Page) {
    this.#page = page
  }

  /** Presses keys, one after the other. */
  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.#page.keyboard.press(key)
  }

  async type(text: string): Promise<void> {
    await this.#page.keyboard.type(text)
  }

  /** The control with the focus. */
  stop(): Promise<Stop> {
    return this.#page.evaluate<Stop>(STOP)
  }

  /**
   * Goes to a control by its name, with Tab or another key. Every stop on the way must be seen, and there must be an end.
   * @throws Error that names the stops.
   */
  async goTo(name: string | RegExp, key = 'Tab'): Promise<void> {
    const stops: string[] = []
    for (let presses = 0; presses <= MAX_TABS; presses++) {
      if (presses > 0) await this.#page.keyboard.press(key)
      const stop = await this.stop()
      if (stop.hidden !== null)
        throw new Error(`the focus is ${stop.hidden} at "${stop.name}", after: ${stops.join(' | ')}`)
      if (typeof name === 'string' ? stop.name === name : name.test(stop.name)) return
      stops.push(stop.name.slice(0, 40))
    }
    throw new Error(`the keyboard does not reach ${name}: ${stops.join(' | ')}`)
  }

  /** Goes to a control and presses Enter. */
  async activate(name: string | RegExp, key?: string): Promise<void> {
    await this.goTo(name, key)
    await this.press('Enter')
  }

  /** Goes past the header and the navigation to the first control of the page, by the link that every page begins with. */
  async skipToContent(key?: string): Promise<void> {
    await this.activate('Skip to content', key)
    await this.press('Tab')
  }

  /** Goes to a field and replaces its text. */
  async fill(name: string | RegExp, text: string): Promise<void> {
    await this.goTo(name)
    await this.press('Control+a')
    await this.type(text)
  }
}
