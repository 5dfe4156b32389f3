const WHOLE_NUMBER = /^(?:0|-?[1-9]\d{0,18})$/
const LARGEST = 2n ** 63n - 1n
const SMALLEST = -(2n ** 63n)

/**
 * Reads an integer as an engine does: no sign but a minus, no zeros in front, no spaces, within 64 bits. Undefined for
 * everything else; beyond 2^53 the number is not exact.
 */
export function wholeNumber(text: string): number | undefined {
  if (!WHOLE_NUMBER.test(text)) return undefined
  const exact = BigInt(text)
  return exact >= SMALLEST && exact <= LARGEST ? Number(exact) : undefined
}
