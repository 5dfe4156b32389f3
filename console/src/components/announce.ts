/** The `id` of the live region of the console. */
export const LIVE_REGION = 'announcements'

/** Lets screen readers say a text that others see, such as the title of a new page. */
export function announce(text: string): void {
  const region = document.getElementById(LIVE_REGION)
  if (region === null) return
  // The same text again would be no change.
  region.textContent = region.textContent === text ? `${text}\u00a0` : text
}
