import { type EventDeclaration, type FieldSpec, LOG_AREAS, nameOf } from '../contract/logs/declaration.js'
import { LOG_EVENTS } from '../contract/logs/events.js'
import { LOG_FIELDS } from '../contract/logs/fields.js'

const OPENING = `# Logs

The server writes its log to stderr: one JSON object per line, or a readable line when stderr is a terminal.

\`\`\`json
{"level":"info","time":"2026-03-01T10:20:30.400Z","event":"engine_started","databaseId":"…","region":"us-east-1","pid":4711,"msg":"engine started"}
\`\`\`

- [\`logLevel\`](configuration.md#loglevel) chooses the lowest level that is written. \`error\` means that a person must look,
  \`warn\` that somebody should when there is time.
- \`event\` and the fields are stable: search for them. The text \`msg\` may change; readable lines have it instead of the
  event.
- A line has only the fields below, which are texts, numbers, or an error. No line has a body, a header, a token, or a query
  string. The message of an error may name what failed, such as an address.
- A line that is written while a request is served has its \`requestId\`: see
  [request ids](operations.md#request-ids). Lines of work in the background name the database, message or action instead.
- With [\`accessLog\`](configuration.md#accesslog), each request to the three HTTP ports is logged as
  \`request_access\`, except for probes.
- \`homeport logs\` shows the newest lines of a running server, and \`homeport logs --follow\` the next ones:
  [operations](operations.md#logs).

This page is generated from the declarations in \`src/contract/logs/\` by \`npm run docs\`.
`

function table(area: (typeof LOG_AREAS)[number]): string {
  const rows = Object.entries<EventDeclaration>(LOG_EVENTS)
    .filter(([, declared]) => declared.area === area)
    .map(([name, { level, text, fields }]) => `| \`${name}\` | ${level} | ${fields.map(shown).join(', ')} | ${text} |`)
  return [`## ${area}`, '', '| event | level | fields | text |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

/** An optional field stands in brackets. */
const shown = (spec: FieldSpec): string => (spec.endsWith('?') ? `[${nameOf(spec)}]` : spec)

function fieldsTable(): string {
  const rows = Object.entries(LOG_FIELDS).map(([name, { type, meaning }]) => `| \`${name}\` | ${type} | ${meaning} |`)
  const opening = ['## Fields', '', 'Fields in brackets above may be absent.', '']
  return [...opening, '| field | type | meaning |', '| --- | --- | --- |', ...rows].join('\n')
}

/** The page `docs/logs.md`, from the declarations. */
export function logsPage(): string {
  return `${[OPENING.trimEnd(), ...LOG_AREAS.map(table), fieldsTable()].join('\n\n')}\n`
}
