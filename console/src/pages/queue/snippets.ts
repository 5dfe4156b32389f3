/** A request that publishes a message or triggers a run, as text for a shell or a program. */
import { shellQuote } from '../../../../src/cli/shell.js'

/** The content of the request. Settings are headers of the API. */
export interface Sendable {
  readonly kind: 'message' | 'run'
  /** A URL, or the name of a URL group. */
  readonly destination: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** A body that is not text. */
  readonly bodyBase64?: string
  readonly queue?: string
}

/** A text to copy. The token is a variable in it, never a value. */
export interface CopySnippet {
  readonly title: string
  readonly code: string
}

/** The titles of all snippets. */
export const SNIPPET_TITLES = ['curl', 'CLI command', 'TypeScript'] as const

/** The notification after a snippet was copied. */
export const COPIED = 'Copied. The token is the variable QSTASH_TOKEN.'

/** The request in every form. */
export function sendSnippets(what: Sendable, queueUrl: string): readonly CopySnippet[] {
  return [
    { title: SNIPPET_TITLES[0], code: curlOf(what, queueUrl) },
    { title: SNIPPET_TITLES[1], code: cliOf(what) },
    { title: SNIPPET_TITLES[2], code: typescriptOf(what, queueUrl) },
  ]
}

const FORWARD = 'upstash-forward-'

/** Linux passes at most 128 KiB in one argument; `printf` is built into the shell and has no such limit. */
const MAX_ARGUMENT_CHARACTERS = 30_000

/** The body in base64 if it cannot be an argument of a command. */
function encodedOf({ body = '', bodyBase64 }: Sendable): string | undefined {
  if (bodyBase64 !== undefined) return bodyBase64
  return body.includes('\0') || body.length > MAX_ARGUMENT_CHARACTERS ? base64Of(body) : undefined
}

const base64Of = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))

const decoding = (encoded: string): string => `printf %s ${shellQuote(encoded)} | base64 -d | `

function curlOf(what: Sendable, queueUrl: string): string {
  const encoded = encodedOf(what)
  const { headers = {}, body } = what
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  const hasBody = encoded !== undefined || (body !== undefined && body !== '')
  const lines = [
    `curl -g --path-as-is -X POST ${shellQuote(`${queueUrl}${pathOf(what)}`)}`,
    '-H "Authorization: Bearer $QSTASH_TOKEN"',
    ...Object.entries(headers).map(([name, value]) => `-H ${shellQuote(`${name}: ${value}`)}`),
    // Without this header, curl would declare the body as a form.
    ...(hasBody && !hasType ? ["-H 'Content-Type:'"] : []),
    ...(encoded === undefined ? (hasBody ? [`--data-raw ${shellQuote(body ?? '')}`] : []) : ['--data-binary @-']),
  ].join(' \\\n  ')
  return encoded === undefined ? lines : decoding(encoded) + lines
}

function pathOf({ kind, destination, queue }: Sendable): string {
  // A destination with characters that clients would change in a URL is encoded.
  const target = /^[\w./:?&=%~+,@-]+$/.test(destination) ? destination : encodeURIComponent(destination)
  if (kind === 'run') return `/v2/trigger/${target}`
  return queue === undefined ? `/v2/publish/${target}` : `/v2/enqueue/${encodeURIComponent(queue)}/${target}`
}

/** The flags of settings, by header. */
const FLAGS: Readonly<Record<string, string>> = {
  'upstash-method': 'method',
  'upstash-label': 'label',
  'upstash-delay': 'delay',
  'upstash-retries': 'retries',
  'upstash-retry-delay': 'retry-delay',
  'upstash-timeout': 'timeout',
  'upstash-callback': 'callback',
  'upstash-failure-callback': 'failure-callback',
  'upstash-deduplication-id': 'deduplication-id',
  'upstash-flow-control-key': 'flow-key',
  'upstash-flow-control-value': 'flow',
  'upstash-workflow-runid': 'run-id',
  'homeport-priority': 'priority',
  'homeport-debounce': 'debounce',
  'homeport-debounce-delay': 'debounce-delay',
  'homeport-debounce-max-delay': 'debounce-max-delay',
  'homeport-singleton': 'singleton',
  'homeport-singleton-mode': 'singleton-mode',
}

function cliOf(what: Sendable): string {
  const { kind, destination, queue, headers = {}, body } = what
  const words =
    kind === 'run' ? ['runs', 'trigger'] : queue === undefined ? ['queue', 'publish'] : ['queue', 'enqueue', queue]
  const encoded = encodedOf(what)
  const content = encoded === undefined ? (body ? [`--body=${body}`] : []) : ['--file=-']
  const flags = [...Object.entries(headers).map(flagOf), ...content]
  const command = ['homeport', ...[...words, destination, ...flags].map(shellQuote)].join(' ')
  return encoded === undefined ? command : decoding(encoded) + command
}

function flagOf([name, value]: readonly [string, string]): string {
  const flag = FLAGS[name]
  if (flag !== undefined) return `--${flag}=${value}`
  return `--header=${name.startsWith(FORWARD) ? name.slice(FORWARD.length) : name}: ${value}`
}

function typescriptOf(what: Sendable, queueUrl: string): string {
  return what.kind === 'run' ? triggerCode(what, queueUrl) : publishCode(what, queueUrl)
}

const client = (from: string, queueUrl: string): string[] => [
  `import { Client } from '${from}'`,
  '',
  `const client = new Client({ baseUrl: ${literal(queueUrl)}, token: process.env.QSTASH_TOKEN ?? '' })`,
]

function publishCode(what: Sendable, queueUrl: string): string {
  const { destination, queue } = what
  const { 'upstash-method': method, ...headers } = what.headers ?? {}
  const isUrl = /^https?:/i.test(destination)
  const call = queue === undefined ? 'client.publish' : `client.queue({ queueName: ${literal(queue)} }).enqueue`
  return [
    ...client('@upstash/qstash', queueUrl),
    `await ${call}({`,
    `  ${isUrl ? 'url' : 'urlGroup'}: ${literal(destination)},`,
    ...(method === undefined ? [] : [`  method: ${literal(method)},`]),
    ...(Object.keys(headers).length > 0 ? [`  headers: ${literal(headers)},`] : []),
    ...bodyLine(what),
    '})',
  ].join('\n')
}

/** Options of `trigger`, by header; numbers without quotes. */
const OPTIONS: Readonly<Record<string, string>> = {
  'upstash-label': 'label',
  'upstash-delay': 'delay',
  'upstash-retries': 'retries',
  'upstash-failure-callback': 'failureUrl',
  'upstash-workflow-runid': 'workflowRunId',
}

function triggerCode(what: Sendable, queueUrl: string): string {
  const entries = Object.entries(what.headers ?? {})
  const headers = entries
    .filter(([name]) => name.startsWith(FORWARD) || name.startsWith('homeport-') || name === 'content-type')
    .map(([name, value]) => [name.startsWith(FORWARD) ? name.slice(FORWARD.length) : name, value])
  const options = entries.flatMap(([name, value]) => {
    const option = OPTIONS[name]
    return option === undefined ? [] : [`  ${option}: ${option === 'retries' ? Number(value) : literal(value)},`]
  })
  const flowKey = what.headers?.['upstash-flow-control-key']
  return [
    ...client('@upstash/workflow', queueUrl),
    `await client.trigger({`,
    `  url: ${literal(what.destination)},`,
    ...options,
    ...(flowKey === undefined
      ? []
      : [`  // Add the limits of the flow-control key ${literal(flowKey)} as flowControl.`]),
    ...(headers.length > 0 ? [`  headers: ${literal(Object.fromEntries(headers))},`] : []),
    ...bodyLine(what),
    '})',
  ].join('\n')
}

function bodyLine({ body, bodyBase64 }: Sendable): string[] {
  if (bodyBase64 !== undefined) return [`  body: Buffer.from(${literal(bodyBase64)}, 'base64'),`]
  return body ? [`  body: ${literal(body)},`] : []
}

/** JSON that is safe in a comment, too. There, the two replaced characters would end the line. */
function literal(value: string | object): string {
  return JSON.stringify(value).replace(/[\u2028\u2029]/g, (end) => (end === '\u2028' ? '\\u2028' : '\\u2029'))
}
