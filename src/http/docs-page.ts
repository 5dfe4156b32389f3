import { createHash } from 'node:crypto'
import type { TSchema } from 'typebox'
import { type AuthScheme, type Endpoint, type ServiceName, type SuccessShape, TOPICS } from '../contract/endpoint.js'
import {
  type Described,
  errorsByStatus,
  exampleOf,
  type Field,
  fieldsOf,
  propertiesOf,
  SERVICE_TITLES,
} from './openapi.js'
import { DATA_HEADER_MAP } from './safe-headers.js'

const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 6rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 4rem; }
section { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 0.5rem; }
code, pre { font: 0.92em ui-monospace, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem 0.8rem; }
.verb { font-weight: 700; margin-right: 0.5em; } .quiet { opacity: 0.75; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem 0.35rem 0; border-bottom: 1px solid var(--line); }
nav { columns: 2 22rem; } nav div { break-inside: avoid; padding-bottom: 1rem; } nav ul { margin: 0; padding-left: 1.1rem; } a { color: inherit; }
h3, p { overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  thead { display: none; } tr { display: block; padding: 0.35rem 0; border-bottom: 1px solid var(--line); }
  td { display: block; border: 0; padding: 0; overflow-wrap: anywhere; } td::before { content: attr(data-label) ' '; opacity: 0.75; } td:empty { display: none; }
}
`

/** The page loads nothing except its inline style sheet. */
export const DOCS_HEADERS: Readonly<Record<string, string>> = {
  ...DATA_HEADER_MAP,
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
}

const AUTH_TEXTS: Readonly<Record<AuthScheme, string>> = {
  basic: 'HTTP Basic: e-mail and API key',
  bearer: 'Bearer: the queue token, or the query parameter qstash_token',
  none: 'none',
}

/** Examples use the variables that `homeport env` sets. */
const URL_VARIABLES: Readonly<Record<ServiceName, string>> = { management: '$HOMEPORT_API_URL', queue: '$QSTASH_URL' }
const AUTH_ARGUMENTS: Readonly<Record<AuthScheme, readonly string[]>> = {
  basic: ['-u "$HOMEPORT_EMAIL:$HOMEPORT_API_KEY"'],
  bearer: ['-H "Authorization: Bearer $QSTASH_TOKEN"'],
  none: [],
}

/** The page `/docs`: all operations with examples, fields and errors. It needs no script. */
export function docsPage(described: Described): string {
  const title = SERVICE_TITLES[described.service]
  const chapters = TOPICS.map((topic) => ({
    topic,
    endpoints: described.endpoints.filter((endpoint) => endpoint.topic === topic),
  })).filter(({ endpoints }) => endpoints.length > 0)
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><link rel="icon" href="data:,"><style>${STYLE}</style></head><body>
<h1>${escapeHtml(title)}</h1>
<p class="quiet">Version ${escapeHtml(described.version)} at <code>${escapeHtml(described.publicUrl)}</code>. For machines: <a href="/openapi.json">OpenAPI 3.1</a>.</p>
<p>The examples use the variables that <code>eval "$(npx homeport env)"</code> sets. An error is <code>{"error": "..."}</code>; its text says what is wrong and what to do.</p>
<nav aria-label="Operations">${chapters.map(contents).join('')}</nav>
<main>
${chapters.map(chapter).join('\n')}
</main>
</body></html>
`
}

interface Chapter {
  readonly topic: string
  readonly endpoints: readonly Endpoint[]
}

function contents({ topic, endpoints }: Chapter): string {
  const lines = endpoints.map(({ id, summary }) => `<li><a href="#${escapeHtml(id)}">${escapeHtml(summary)}</a></li>`)
  return `<div><strong>${escapeHtml(topic)}</strong><ul>${lines.join('')}</ul></div>`
}

const chapter = ({ topic, endpoints }: Chapter): string =>
  `<h2>${escapeHtml(topic)}</h2>\n${endpoints.map(section).join('\n')}`

function section(endpoint: Endpoint): string {
  const errors = [...errorsByStatus(endpoint)].map(([status, codes]) => `${status} (${codes.join(', ')})`)
  const parts = [
    `<section id="${escapeHtml(endpoint.id)}"><h3>${escapeHtml(endpoint.summary)}</h3>`,
    `<p><code><span class="verb">${endpoint.method}</span>${escapeHtml(endpoint.path)}</code></p>`,
    `<p>${prose(endpoint.description)}</p>`,
    `<p class="quiet">Authentication: ${AUTH_TEXTS[endpoint.auth]}.</p>`,
    `<pre>${escapeHtml(curl(endpoint))}</pre>`,
    fieldTable('Path', 'Required', endpoint.params),
    fieldTable('Query', 'Required', endpoint.query),
    bodyPart(endpoint),
    ...[endpoint.success, ...(endpoint.otherAnswers ?? [])].map(answerPart),
    `<p class="quiet">Errors: ${errors.join(', ')}.</p></section>`,
  ]
  return parts.filter((part) => part !== '').join('\n')
}

/** A `curl` command that calls the operation with its required parameters. */
function curl({ service, method, path, auth, body }: Endpoint): string {
  const target = path.replace('{+destination}', 'https://example.com/hook').replaceAll(/\{\+?(\w+)\}/g, '$$$1')
  const verb = method === 'GET' ? [] : [method === 'HEAD' ? '--head' : `-X ${method}`]
  const words = ['curl', ...verb, `"${URL_VARIABLES[service]}${target}"`, ...AUTH_ARGUMENTS[auth]]
  return [words.join(' '), ...bodyArguments(body)].join(' \\\n  ')
}

function bodyArguments(body: Endpoint['body']): string[] {
  switch (body.kind) {
    case 'none':
      return []
    case 'raw':
      return ["-d 'any text'"]
    case 'stream':
      return ['-T file']
    case 'json':
      // Without this example, a copied bulk operation would select everything.
      return propertiesOf(body.schema).length === 0
        ? []
        : [`-H 'Content-Type: application/json' -d '${JSON.stringify(exampleOf(body.schema))}'`]
  }
}

function answerPart({ status, description, body }: SuccessShape): string {
  return `<h4>Response ${status}</h4><p>${prose(description)}</p>${fieldTable('Fields of the response', 'Always', body)}`
}

function bodyPart(endpoint: Endpoint): string {
  switch (endpoint.body.kind) {
    case 'none':
      return ''
    case 'raw':
    case 'stream':
      return '<h4>Body</h4><p>Any bytes; they are passed on unchanged.</p>'
    case 'json':
      return fieldTable('Body (JSON)', 'Required', endpoint.body.schema)
  }
}

function fieldTable(heading: string, presence: 'Required' | 'Always', schema: TSchema | undefined): string {
  const rows = fieldsOf(schema).map((field) => fieldRow(field, presence))
  if (rows.length === 0) return ''
  return `<h4>${heading}</h4><table><thead><tr><th>Field</th><th>Type</th><th>${presence}</th><th>Meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}

function fieldRow({ name, type, required, meaning }: Field, presence: string): string {
  const cells = [`<code>${escapeHtml(name)}</code>`, escapeHtml(type), required ? 'yes' : 'no', prose(meaning)]
  return `<tr>${cells.map((cell, index) => `<td${index === 2 ? ` data-label="${presence}:"` : ''}>${cell}</td>`).join('')}</tr>`
}

/** HTML of a text of the contract, with code in backticks. */
const prose = (text: string): string => escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
