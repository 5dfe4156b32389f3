import { tryParseJson } from '../../base/index.js'
import { asObject, parseJson } from './sent-steps.js'

/** Characters of what an answer says that is no error of an SDK: it may be a whole page. */
const MAX_TEXT_LENGTH = 200

/** A page of this length has had its title: frameworks answer with one when something else than the program fails. */
const MAX_HEAD_BYTES = 4_096
const PAGE = /^\s*<(?:!doctype\s+html|html)\b[\s\S]*?<title>([^<]+)<\/title>/i

/** What came of a failed attempt. */
interface FailedAnswer {
  readonly status: number
  /** Why there was no answer, or why it does not do. */
  readonly error?: string | null | undefined
  readonly body: Uint8Array | null
}

/** What is wrong, in a text for people: there always is one. */
export function errorText({ status, error, body }: FailedAnswer): string {
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

/** The beginning of what a program has thrown, in an answer of an SDK of which only the beginning was kept. */
function truncatedMessage(body: Uint8Array | null): string | undefined {
  const [, quoted] = THROWN.exec(decoder.decode(body?.subarray(0, MAX_HEAD_BYTES))) ?? []
  const text = quoted === undefined ? undefined : tryParseJson(`"${quoted}"`)
  return typeof text === 'string' ? text.slice(0, MAX_TEXT_LENGTH) : undefined
}

/** What stands above a page in HTML, which is no text for people before it is drawn. */
function pageTitle(body: Uint8Array | null): string | undefined {
  const title = PAGE.exec(decoder.decode(body?.subarray(0, MAX_HEAD_BYTES)))?.[1]
    ?.trim()
    .slice(0, MAX_TEXT_LENGTH)
  return title && `a page in HTML: ${title}`
}

/**
 * What a program has thrown, by its failing answer: SDKs answer with a JSON object that has it as `message`. When this
 * server has refused a request of the SDK, that is the JSON of the refusal, of which only the text is for people.
 */
export function thrownMessage(body: Uint8Array | null): string | undefined {
  const message = asObject(parseJson(body ?? undefined))?.message
  if (typeof message !== 'string' || message === '') return undefined
  const refusal = asObject(tryParseJson(message))?.error
  return typeof refusal === 'string' ? refusal : message
}
