/**
 * Puts a text into the clipboard. Browsers give `navigator.clipboard` to pages of https and of this computer only; a
 * console in a network of one's own is often neither.
 * @throws Error when the browser does not allow it.
 */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard === undefined) copySelected(text)
  else await navigator.clipboard.writeText(text)
}

/** The old way: the browser copies what is selected. */
function copySelected(text: string): void {
  const before = document.activeElement
  const field = document.createElement('textarea')
  field.value = text
  field.setAttribute('aria-hidden', 'true')
  field.style.cssText = 'position:fixed;opacity:0'
  document.body.append(field)
  field.select()
  const isCopied = document.execCommand('copy')
  field.remove()
  if (before instanceof HTMLElement) before.focus()
  if (!isCopied) throw new Error('The browser does not allow it. Select the text and copy it by hand.')
}
