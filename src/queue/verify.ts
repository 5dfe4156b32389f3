import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { isObject, tryParseJson } from '../base/index.js'

/** A delivery as its receiver got it. */
export interface ReceivedDelivery {
  /** The value of `Upstash-Signature`. */
  readonly signature: string | undefined
  readonly body: Uint8Array
  /** The URL that the receiver expects; `undefined` skips the comparison. */
  readonly url: string | undefined
}

/** One problem of a signature. */
export interface SignatureProblem {
  readonly part: 'header' | 'form' | 'alg' | 'key' | 'iss' | 'sub' | 'exp' | 'nbf' | 'body'
  readonly problem: string
  readonly expected?: string
  readonly found?: string
}

/** The result of verifying a delivery. */
export interface Verdict {
  readonly valid: boolean
  readonly signedWith?: 'current' | 'next'
  readonly problems: SignatureProblem[]
}

type Keys = { readonly current: string; readonly next: string }
type Claims = Readonly<Record<string, unknown>>

/** Characters. A valid signature has a few hundred. */
const MAX_SIGNATURE_LENGTH = 16_384
/** The cause of a mismatch is searched in bodies up to this size, because each is hashed a dozen times. */
const MAX_EXPLAINED_BYTES = 262_144
const MAX_FOUND_LENGTH = 200
const NOT_HS256 = 'The signature uses another algorithm than HS256, which signs deliveries. A receiver must refuse it.'

const shown = (claim: unknown): string => String(claim).slice(0, MAX_FOUND_LENGTH)

const failed = (part: SignatureProblem['part'], problem: string): Verdict => ({
  valid: false,
  problems: [{ part, problem }],
})

/**
 * Verifies a signature as receivers do (reference queue 3.2), but reports every claim that is wrong instead of the
 * first. Reveals nothing about the keys: without a valid signature by one of them, claims are not checked.
 */
export function explainSignature(seen: ReceivedDelivery, keys: Keys, now: number): Verdict {
  const { signature } = seen
  if (signature === undefined || signature === '')
    return failed(
      'header',
      'The header Upstash-Signature is missing. A proxy in front of the receiver may have dropped it.',
    )
  if (signature.length > MAX_SIGNATURE_LENGTH)
    return failed('form', 'The header Upstash-Signature is far longer than any signature.')
  const [head = '', payload = '', mac = '', ...more] = signature.split('.')
  const claims = claimsOf(payload)
  if (!claims || mac === '' || more.length > 0)
    return failed(
      'form',
      'The header Upstash-Signature is not a JWT with three parts. It may have been cut or decoded.',
    )
  const alg = claimsOf(head)?.alg
  if (alg !== 'HS256')
    return { valid: false, problems: [{ part: 'alg', problem: NOT_HS256, expected: 'HS256', found: shown(alg) }] }
  const signedWith = signerOf(`${head}.${payload}`, mac, keys)
  if (!signedWith) {
    return failed(
      'key',
      'It was made with neither the current nor the next signing key of this account. It comes from another account or ' +
        'server, the keys were rotated twice, or the header was changed on its way.',
    )
  }
  const problems = [...claimProblems(claims, seen.url, now), ...bodyProblems(claims, seen.body)]
  return { valid: problems.length === 0, signedWith, problems }
}

function claimsOf(payload: string): Claims | undefined {
  const value = tryParseJson(Buffer.from(payload, 'base64url').toString('utf8'))
  return isObject(value) ? value : undefined
}

function signerOf(signed: string, mac: string, keys: Keys): 'current' | 'next' | undefined {
  const found = Buffer.from(mac, 'base64url')
  const isBy = (key: string): boolean => {
    const expected = createHmac('sha256', key).update(signed).digest()
    return expected.length === found.length && timingSafeEqual(expected, found)
  }
  if (isBy(keys.current)) return 'current'
  return isBy(keys.next) ? 'next' : undefined
}

function claimProblems(claims: Claims, url: string | undefined, now: number): SignatureProblem[] {
  const seconds = Math.floor(now / 1_000)
  const problems: SignatureProblem[] = []
  const differs = (part: SignatureProblem['part'], expected: string, problem: string): void => {
    problems.push({ part, problem, expected, found: shown(claims[part]) })
  }
  if (claims.iss !== 'Upstash') differs('iss', 'Upstash', 'The issuer is not the one that receivers expect.')
  if (url !== undefined && claims.sub !== url)
    differs('sub', url, 'The delivery was signed for another URL. A proxy may rewrite host, scheme, path or query.')
  if (typeof claims.exp !== 'number') differs('exp', 'a number', 'The claim exp is not a number.')
  else if (claims.exp <= seconds)
    differs(
      'exp',
      `later than ${seconds}`,
      'The signature has expired: it is valid for five minutes. Compare the clocks.',
    )
  if (typeof claims.nbf !== 'number') differs('nbf', 'a number', 'The claim nbf is not a number.')
  else if (claims.nbf > seconds)
    differs('nbf', `not after ${seconds}`, 'The signature is not valid yet. Compare the clocks.')
  return problems
}

const hashOf = (body: Uint8Array | string): string => createHash('sha256').update(body).digest('base64url')

function bodyProblems(claims: Claims, body: Uint8Array): SignatureProblem[] {
  const expected = shown(claims.body).replace(/=+$/, '')
  const found = hashOf(body)
  if (expected === found) return []
  const isShort = body.byteLength <= MAX_EXPLAINED_BYTES
  const change = isShort
    ? KNOWN_CHANGES.find(({ undo }) =>
        undo(Buffer.from(body).toString('utf8')).some((text) => hashOf(text) === expected),
      )
    : undefined
  const cause = change?.cause ?? 'A framework may have parsed and rewritten it: verify the raw bytes before parsing.'
  return [{ part: 'body', problem: `The body is not the one that was signed. ${cause}`, expected, found }]
}

/**
 * Changes that frameworks make to a body. Each is undone in turn; the one whose result matches the hash is the cause.
 */
const KNOWN_CHANGES: readonly { readonly cause: string; readonly undo: (text: string) => readonly string[] }[] = [
  { cause: 'It has white space or a line end that was not sent.', undo: (text) => [text.trim(), text.trimEnd()] },
  { cause: 'A line end is missing at its end.', undo: (text) => [`${text}\n`, `${text}\r\n`] },
  {
    cause: 'Its line ends were changed.',
    undo: (text) => [text.replaceAll('\r\n', '\n'), text.replace(/\r?\n/g, '\r\n')],
  },
  { cause: 'It was wrapped into a JSON text: unwrap it once.', undo: (text) => unwrapped(text) },
  { cause: 'It was parsed as JSON and written again with other white space.', undo: (text) => rewritten(text) },
  { cause: 'The body is there, but an empty one was signed.', undo: () => [''] },
  {
    cause: 'It is in base64, but the bytes were signed.',
    undo: (text) => [Buffer.from(text, 'base64').toString('utf8')],
  },
]

function unwrapped(text: string): readonly string[] {
  const value = tryParseJson(text)
  return typeof value === 'string' ? [value] : []
}

function rewritten(text: string): readonly string[] {
  const value = tryParseJson(text)
  if (value === undefined) return []
  return [
    JSON.stringify(value),
    JSON.stringify(value, null, 2),
    JSON.stringify(value, null, 4),
    JSON.stringify(value, null, '\t'),
  ]
}
