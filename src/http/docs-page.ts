import type { TSchema } from 'typebox'
import type { AuthScheme, Endpoint, SuccessShape } from '../contract/endpoint.js'
import { type Described, errorsByStatus, propertiesOf, SERVICE_TITLES } from './openapi.js'

const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 6rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1.5rem; }
code { font: 0.92em ui-monospace, monospace; overflow-wrap: anywhere; }
.verb { font-weight: 700; margin-right: 0.5em; } .quiet { opacity: 0.7; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem 0.35rem 0; border-bottom: 1px solid var(--line); }
nav ul { padding-left: 1.1rem; columns: 2 22rem; } a { color: inherit; }
`

const AUTH_TEXTS: Readonly<Record<AuthScheme, string>> = {
  basic: 'HTTP Basic: e-mail and API key',
  bearer: 'Bearer: the queue token, or the query parameter qstash_token',
  none: 'none',
}

/** The page at `/docs`: every operation with its fields and errors, readable without any script. */
export function docsPage(described: Described): string {
  const title = SERVICE_TITLES[described.service]
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body>
<h1>${escapeHtml(title)}</h1>
<p class="quiet">Version ${escapeHtml(described.version)} at <code>${escapeHtml(described.publicUrl)}</code>. The same as data: <a href="/openapi.json">OpenAPI 3.1</a>.</p>
<nav><ul>${described.endpoints.map(contentsLine).join('')}</ul></nav>
${described.endpoints.map(section).join('\n')}
</body></html>
`
}

function contentsLine(endpoint: Endpoint): string {
  return `<li><a href="#${escapeHtml(endpoint.id)}">${escapeHtml(endpoint.summary)}</a></li>`
}

function section(endpoint: Endpoint): string {
  const parts = [
    `<h2 id="${escapeHtml(endpoint.id)}">${escapeHtml(endpoint.summary)}</h2>`,
    `<p><code><span class="verb">${endpoint.method}</span>${escapeHtml(endpoint.path)}</code></p>`,
    `<p>${escapeHtml(endpoint.description)}</p>`,
    `<p class="quiet">Authentication: ${AUTH_TEXTS[endpoint.auth]}.</p>`,
    fieldTable('Path', endpoint.params),
    fieldTable('Query', endpoint.query),
    bodyPart(endpoint),
    ...[endpoint.success, ...(endpoint.otherAnswers ?? [])].map(answerPart),
    `<p class="quiet">Errors: ${[...errorsByStatus(endpoint)].map(([status, codes]) => `${status} (${codes.join(', ')})`).join(', ')}.</p>`,
  ]
  return parts.join('\n')
}

function answerPart({ status, description, body }: SuccessShape): string {
  return `<h3>Answer ${status}</h3><p>${escapeHtml(description)}</p>${fieldTable('Fields of the answer', body)}`
}

function bodyPart(endpoint: Endpoint): string {
  switch (endpoint.body.kind) {
    case 'none':
      return ''
    case 'raw':
    case 'stream':
      return '<h3>Body</h3><p>Any bytes; they pass through as they are.</p>'
    case 'json':
      return fieldTable('Body (JSON)', endpoint.body.schema)
  }
}

function fieldTable(heading: string, schema: TSchema | undefined): string {
  const properties = propertiesOf(schema)
  if (properties.length === 0) return ''
  const rows = properties.map(({ name, property, required }) => {
    const need = required ? 'yes' : 'no'
    return `<tr><td><code>${escapeHtml(name)}</code></td><td>${escapeHtml(typeText(property))}</td><td>${need}</td><td>${escapeHtml(textOf(property, 'description'))}</td></tr>`
  })
  return `<h3>${heading}</h3><table><thead><tr><th>Field</th><th>Type</th><th>Always</th><th>Meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}

function typeText(schema: TSchema): string {
  const known = schema as {
    enum?: readonly unknown[]
    type?: string
    items?: TSchema
    anyOf?: readonly TSchema[]
    const?: unknown
  }
  if (known.const !== undefined) return String(known.const)
  if (known.enum) return known.enum.map(String).join(' | ')
  if (known.anyOf) return known.anyOf.map(typeText).join(' | ')
  if (known.type === 'array' && known.items) return `list of ${typeText(known.items)}`
  return known.type ?? 'any'
}

function textOf(schema: TSchema, key: string): string {
  const value: unknown = (schema as Record<string, unknown>)[key]
  return typeof value === 'string' ? value : ''
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
