/** The path of the sign-in page, which opens a page of the console afterwards. */
export const signInPath = (next: string): string =>
  next === '/' ? '/sign-in' : `/sign-in?${new URLSearchParams({ next })}`

/**
 * The path that the sign-in page opens afterwards.
 * @param search the query string of the sign-in page.
 */
export function nextOf(search: string): string {
  const next = new URLSearchParams(search).get('next') ?? ''
  // Only paths of this console: other URLs would lead users to another site. Browsers remove tabs and line breaks from URLs,
  // so a path with them could become such a URL.
  return /^\/(?![/\\])[^\t\r\n]*$/.test(next) ? next : '/'
}
