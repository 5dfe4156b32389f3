/** The `id` of the live region of the console. */
export const LIVE_REGION = 'announcements'

/** Makes screen readers say a text, such as the title of a new page. */
export function announce(text: string): void {
  const region = document.getElementById(LIVE_REGION)
  if (region === null) return
  // Screen readers say only changed texts, so a repeated text gets an invisible space.
  region.textContent = region.textContent === text ? `${text}\u00a0` : text
}
