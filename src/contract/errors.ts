/**
 * The catalogue of errors: every error that a caller can meet stands here once, with everything that any listener
 * needs to render it. A text says what is wrong, what was found and what to do, in one or two sentences.
 *
 * - `status`: the HTTP status.
 * - `resp`: the first word of the error on the Redis protocol and, for the data plane, in REST texts too.
 * - `blame`: who has to act: the `caller`, the `operator` of the server, or `homeport` itself.
 * - `retry`: `never` (the same request fails again), `later` (it may succeed after a wait).
 */
export interface ErrorEntry<Details> {
  readonly status: number
  readonly resp?: string
  readonly blame: 'caller' | 'operator' | 'homeport'
  readonly retry: 'never' | 'later'
  readonly text: (details: Details) => string
}

const define = <Details>(entry: ErrorEntry<Details>): ErrorEntry<Details> => entry

/** Details of an error that has nothing to add. */
export type None = Record<string, never>

/** All errors by code. The order is the order of the docs page. */
export const ERRORS = {
  invalid_json: define<{ reason: string }>({
    status: 400,
    blame: 'caller',
    retry: 'never',
    text: ({ reason }) => `The request body is not valid JSON (${reason}). Send a JSON body in UTF-8.`,
  }),
  invalid_request: define<{ problem: string }>({
    status: 400,
    blame: 'caller',
    retry: 'never',
    text: ({ problem }) => problem,
  }),
  unauthorized: define<{ scheme: 'Basic' | 'Bearer' }>({
    status: 401,
    blame: 'caller',
    retry: 'never',
    text: ({ scheme }) =>
      scheme === 'Basic'
        ? 'Unauthorized: the e-mail and API key of the Authorization header are missing or not valid. Send "Basic " and the base64 of <e-mail>:<API key>; `homeport env` prints both.'
        : 'Unauthorized: the token is missing or not valid. Send the header "Authorization: Bearer <QSTASH_TOKEN>"; `homeport env` prints the token.',
  }),
  readonly_api_key: define<None>({
    status: 403,
    blame: 'caller',
    retry: 'never',
    text: () => 'Readonly API key: this key may read but not change anything. Use a key with write access.',
  }),
  unknown_route: define<{ method: string; path: string }>({
    status: 404,
    blame: 'caller',
    retry: 'never',
    text: ({ method, path }) => `There is no operation ${method} ${path}. The page /docs of this listener lists all of them.`,
  }),
  wrong_method: define<{ method: string; path: string; allowed: readonly string[] }>({
    status: 405,
    blame: 'caller',
    retry: 'never',
    text: ({ method, path, allowed }) => `${path} does not take ${method}. Use ${allowed.join(' or ')}.`,
  }),
  body_too_large: define<{ limitBytes: number }>({
    status: 413,
    blame: 'caller',
    retry: 'never',
    text: ({ limitBytes }) => `The request body is larger than the limit of ${limitBytes} bytes. Send less.`,
  }),
  internal: define<{ reference: string }>({
    status: 500,
    blame: 'homeport',
    retry: 'later',
    text: ({ reference }) => `Something went wrong on our side. The server's log has the details under the reference ${reference}.`,
  }),
  starting: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () => 'The service is starting or stopping. Try again in a moment.',
  }),
  store_full: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () => 'The disk of the server is full, nothing was changed. Free space on the disk of the data directory and try again.',
  }),
  store_unavailable: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () => 'The store of the server cannot be reached, nothing was changed. Try again in a moment.',
  }),
  engine_missing: define<{ looked: string }>({
    status: 503,
    blame: 'operator',
    retry: 'never',
    text: ({ looked }) =>
      `No engine was found (looked for ${looked}). Install one, for example with "apt-get install redis-server" or "brew install valkey", or name its program with --engine-binary.`,
  }),
  engine_unsafe_version: define<{ problem: string }>({
    status: 503,
    blame: 'operator',
    retry: 'never',
    text: ({ problem }) => `The engine is refused: ${problem} Update it, or accept the risk with --engine-allow-unsafe-version.`,
  }),
  engine_failed: define<{ reason: string }>({
    status: 503,
    resp: 'ERR',
    blame: 'homeport',
    retry: 'later',
    text: ({ reason }) => `The engine of this database is not available: ${reason}. Try again in a moment; the server's log has the details.`,
  }),
} as const

/** The name of an error in the catalogue. */
export type ErrorCode = keyof typeof ERRORS

/** What an error of this code has to tell. */
export type ErrorDetails<Code extends ErrorCode> = (typeof ERRORS)[Code] extends ErrorEntry<infer Details> ? Details : never

/** An error of the catalogue, thrown by any room and rendered by the listener it reaches. */
export class HomeportError<Code extends ErrorCode = ErrorCode> extends Error {
  readonly code: Code
  readonly details: ErrorDetails<Code>

  constructor(code: Code, details: ErrorDetails<Code>, options?: ErrorOptions) {
    const entry: { readonly text: (details: never) => string } = ERRORS[code]
    super(entry.text(details as never), options)
    this.name = 'HomeportError'
    this.code = code
    this.details = details
  }

  /** The HTTP status of this error. */
  get status(): number {
    return ERRORS[this.code].status
  }

  /** Whether the same request may succeed later. */
  get retry(): 'never' | 'later' {
    return ERRORS[this.code].retry
  }
}

/** The JSON body of every failed HTTP request. */
export interface ErrorBody {
  readonly error: string
}
