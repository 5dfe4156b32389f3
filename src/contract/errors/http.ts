import { define, type None } from './entry.js'

/** Errors of every HTTP listener. */
export const httpErrors = {
  invalid_json: define<{ reason: string }>({
    status: 400,
    text: ({ reason }) => `The request body is not valid JSON (${reason}). Send a JSON body in UTF-8.`,
  }),
  invalid_request: define<{ problem: string }>({
    status: 400,
    text: ({ problem }) => problem,
  }),
  unauthorized: define<{ scheme: 'Basic' | 'Bearer' }>({
    status: 401,
    text: ({ scheme }) =>
      scheme === 'Basic'
        ? 'Unauthorized: the e-mail and API key of the Authorization header are missing or not valid. Send "Basic " and the base64 of <e-mail>:<API key>; `homeport env` prints both.'
        : 'Unauthorized: the token is missing or not valid. Send the header "Authorization: Bearer <QSTASH_TOKEN>"; `homeport env` prints the token.',
  }),
  readonly_api_key: define<None>({
    status: 403,
    text: () => 'Readonly API key: this key may read but not change anything. Use a key with write access.',
  }),
  host_not_served: define<{ host: string }>({
    status: 421,
    text: ({ host }) =>
      `This server does not accept the host name "${host}" of the Host header. Use localhost or 127.0.0.1. If the name is yours, set the public URL of this listener (publicApiUrl, publicRestUrl, publicQueueUrl), or add the name to the option allowedHosts.`,
  }),
  unknown_route: define<{ method: string; path: string }>({
    status: 404,
    text: ({ method, path }) =>
      `There is no operation ${method} ${path}. The page /docs of this listener lists all of them.`,
  }),
  wrong_method: define<{ method: string; path: string; allowed: readonly string[] }>({
    status: 405,
    text: ({ method, path, allowed }) => `${path} does not accept ${method}. Use ${allowed.join(' or ')}.`,
  }),
  body_too_large: define<{ limitBytes: number; bytes?: number }>({
    status: 413,
    text: ({ limitBytes, bytes }) =>
      `The request body${bytes === undefined ? '' : ` of ${bytes} bytes`} is larger than the limit of ${limitBytes} bytes. Send less.`,
  }),
  body_too_slow: define<{ seconds: number }>({
    // Not 400: SDKs of workflows would consider the run ended and report nothing.
    status: 503,
    retry: 'later',
    text: ({ seconds }) => `The request body was not complete within ${seconds} s. Send it again, or send less.`,
  }),
  body_too_complex: define<{ what: string; limit: string }>({
    status: 400,
    text: ({ what, limit }) => `The request body ${what}: the limit is ${limit}. Send less in one request.`,
  }),
  too_many_heavy_requests: define<{ most: number }>({
    status: 429,
    retry: 'later',
    text: ({ most }) =>
      `${most} requests of this account that may read many rows are waiting, which is the limit. Send fewer at the same time.`,
  }),
  headers_too_large: define<{ limitBytes: number }>({
    status: 431,
    text: ({ limitBytes }) =>
      `The request line and the headers together are longer than the limit of ${limitBytes} bytes. Shorten them, or send the data in the body.`,
  }),
  internal: define<{ reference: string }>({
    status: 500,
    text: ({ reference }) =>
      `The server failed to handle this request. Its log has the details under the reference ${reference}.`,
  }),
  starting: define<None>({
    status: 503,
    retry: 'later',
    text: () => 'The service is starting or stopping. Try again in a moment.',
  }),
} as const
