/** Bodies of a dead letter, as the reading operations show them. */
interface WithBodies {
  readonly body?: string
  readonly bodyBase64?: string
  readonly responseBody?: string
  readonly responseBodyBase64?: string
}

const TEXTS = ['body', 'responseBody'] as const
const IN_BASE64 = ['bodyBase64', 'responseBodyBase64'] as const

/** Cuts texts to `most` characters, and bodies in base64 to `most` bytes. If `most` is undefined, nothing is cut. */
export function trimBodies<View extends WithBodies>(view: View, most: number | undefined): View {
  if (most === undefined) return view
  const cut: Partial<Record<keyof WithBodies, string>> = {}
  for (const name of TEXTS) if (view[name] !== undefined) cut[name] = beginningOf(view[name], most)
  for (const name of IN_BASE64) {
    if (view[name] !== undefined) cut[name] = Buffer.from(view[name], 'base64').subarray(0, most).toString('base64')
  }
  return { ...view, ...cut }
}

/** The first `most` UTF-16 units of a text, without half a surrogate pair at the end. */
function beginningOf(text: string, most: number): string {
  const cut = text.slice(0, most)
  return /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut
}
