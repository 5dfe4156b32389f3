import { tryParseJson } from '../../base/index.js'
import { asObject, parseJson } from './sent-steps.js'

/** Characters quoted from a response that is not an error of an SDK: it may be a whole page. */
const MAX_TEXT_LENGTH = 200

/** Bytes searched for the title of an HTML page, with which frameworks answer when they fail themselves. */
const MAX_HEAD_BYTES = 4_096
const PAGE = /^\s*<(?:!doctype\s+html|html)\b[\s\S]*?<title>([^<]+)<\/title>/i

/** Outcome of a failed attempt. */
interface FailedAttempt {
  readonly status: number
  /** Why there was no response, or why it is not acceptable. */
  readonly error?: string | null | undefined
  readonly body: Uint8Array | null
}

/** The error of a failed attempt, as text for people; never empty. */
export function errorText({ status, error, body }: FailedAttempt): string {
  const said =
    error ??
    thrownMessage(body) ??
    truncatedMessage(body) ??
    pageTitle(body) ??
    decoder.decode(body?.subarray(0, MAX_TEXT_LENGTH)).trim()
  return said === '' ? `HTTP ${status}` : said
}

const decoder = new TextDecoder()

const THROWN = /^\s*\{"error":"[^"\\]*","message":"((?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){1,200})/

/** The start of a thrown message, from the response of an SDK that was kept only in part. */
function truncatedMessage(body: Uint8Array | null): string | undefined {
  const [, quoted] = THROWN.exec(decoder.decode(body?.subarray(0, MAX_HEAD_BYTES))) ?? []
  const text = quoted === undefined ? undefined : tryParseJson(`"${quoted}"`)
  return typeof text === 'string' ? text.slice(0, MAX_TEXT_LENGTH) : undefined
}

/** The title of an HTML page, because people cannot read its markup. */
function pageTitle(body: Uint8Array | null): string | undefined {
  const title = PAGE.exec(decoder.decode(body?.subarray(0, MAX_HEAD_BYTES)))?.[1]
    ?.trim()
    .slice(0, MAX_TEXT_LENGTH)
  return title && `a page in HTML: ${title}`
}

/**
 * The message that a program has thrown: `message` in the JSON response of an SDK. If this server refused a request of
 * the SDK, `message` is the JSON of that refusal, and its `error` is the text.
 */
export function thrownMessage(body: Uint8Array | null): string | undefined {
  const message = asObject(parseJson(body ?? undefined))?.message
  if (typeof message !== 'string' || message === '') return undefined
  const refusal = asObject(tryParseJson(message))?.error
  return typeof refusal === 'string' ? refusal : message
}
