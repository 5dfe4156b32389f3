/**
 * Copies a text to the clipboard. Browsers offer `navigator.clipboard` only to pages of HTTPS and localhost, and a console
 * in a private network often has neither.
 * @throws Error when the browser does not allow it.
 */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard === undefined) copySelected(text)
  else await navigator.clipboard.writeText(text)
}

/** The deprecated way: the browser copies the selection. */
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
  if (!isCopied) throw new Error('The browser does not allow copying. Select the text and copy it yourself.')
}
