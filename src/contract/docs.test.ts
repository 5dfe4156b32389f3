import { readFileSync } from 'node:fs'
import type { TObject } from 'typebox'
import { expect, it } from 'vitest'
import * as accounts from './accounts/accounts.js'
import { MAX_AUDIT_SEARCHED } from './accounts/audit-limits.js'
import { MAX_QUEUE_TOKENS } from './accounts/credentials.js'
import * as alerts from './alerts/kinds.js'
import { BULK_KINDS, BULK_STATES, CancelSelector } from './bulk/actions.js'
import { Outcome } from './bulk/answers.js'
import { CONDITION_NAMES, MESSAGE_STANDINGS, RUN_STANDINGS } from './bulk/conditions.js'
import { MAX_PAUSED_URL_BYTES, MAX_PAUSED_WORKFLOWS } from './bulk/paused.js'
import { MAX_SAVED_SELECTORS } from './bulk/saved.js'
import { BackupSchema } from './databases/backups.js'
import { MAX_ALLOWED_IPS } from './databases/changes.js'
import { COMMANDS, enginesWith } from './databases/commands.js'
import * as databases from './databases/databases.js'
import { DatabaseStatsSchema } from './databases/stats.js'
import { deleteDeadLetters } from './queue/dead-letters.js'
import { cancelMessages } from './queue/messages.js'
import { GREATEST_PRIORITY } from './queue/priority.js'
import { MAX_PARALLEL } from './queue/queues.js'
import * as limits from './request-limits.js'
import { MAX_SEARCH_LENGTH } from './search.js'
import { whole } from './words/figures.js'
import { Because } from './workflow/because.js'
import { deleteDeadRuns } from './workflow/dead-letters.js'
import { MAX_WAITERS } from './workflow/events.js'
import { MAX_SORTED } from './workflow/run-order.js'
import { listRunMessageLogs } from './workflow/runs.js'

/** A page of `docs/`, or one of its sections. */
function page(name: string, heading?: string): string {
  const text = readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8')
  if (heading === undefined) return text
  const [, section] = text.split(`\n## ${heading}\n`)
  return section?.split('\n## ')[0] ?? ''
}

/** The first cell of each row of the tables of a section. */
const firstCells = (name: string, heading: string): string =>
  (page(name, heading).match(/^\|[^|]+\|/gm) ?? []).join('\n')

/** The fields of an object, without other spellings of them. */
function fieldsOf({ properties = {} }: Partial<Pick<TObject, 'properties'>> = {}): string[] {
  const isAlias = (field: object): boolean =>
    'description' in field && /^(?:Older|Other|The same)/.test(String(field.description))
  return Object.entries(properties).flatMap(([name, field]) => (isAlias(field) ? [] : [name]))
}

it.each<[what: string, names: readonly string[], text: string]>([
  ['filters of runs', fieldsOf(listRunMessageLogs.query), page('workflow', 'Logs')],
  ['filters of failed runs', fieldsOf(deleteDeadRuns.query), page('workflow', 'Dead letters')],
  ['reasons why a run waits', Because.properties.kind.enum, firstCells('workflow', 'Why a run waits')],
  ['figures of a database', fieldsOf(DatabaseStatsSchema), firstCells('usage', 'The figures')],
  ['fields of a backup', fieldsOf(BackupSchema), page('backups')],
  ['filters of messages', fieldsOf(cancelMessages.query), page('queue', 'Inspect and cancel')],
  ['filters of dead letters', fieldsOf(deleteDeadLetters.query), page('queue', 'Dead letters')],
  ['kinds of bulk actions', BULK_KINDS, firstCells('bulk-cancel', 'Other bulk actions')],
  ['states of bulk actions', BULK_STATES, firstCells('bulk-cancel', 'Actions')],
  ['outcomes of bulk actions', Outcome.enum, page('bulk-cancel')],
  ['fields of a selector', fieldsOf(CancelSelector), page('bulk-cancel')],
  ['conditions', CONDITION_NAMES, firstCells('bulk-cancel', 'Conditions')],
  ['states of runs and messages', [...RUN_STANDINGS, ...MESSAGE_STANDINGS], firstCells('bulk-cancel', 'Conditions')],
])('the documentation has all %s', (_what, names, text) => {
  expect(names.length).toBeGreaterThan(3)
  expect(names.filter((name) => !new RegExp(`[\`"]${name}\\b`).test(text))).toEqual([])
})

it.each(alerts.ALERT_KINDS)('the documentation has the alert rule %s with its threshold', (kind) => {
  const { threshold } = alerts.ruleShape(kind)
  const row = new RegExp(`^\\| \`${kind}\` \\|.*$`, 'm').exec(page('alerts'))?.[0] ?? ''
  expect(row).toContain(threshold ? ` | ${threshold.default} ${threshold.unit} | ` : ' | | ')
})

it('the documentation has every command that is refused, answered by Homeport, or only in newer engines', () => {
  const text = page('redis')
  const named = COMMANDS.filter(
    ({ name, ...row }) => !row.allowed || row.state === 'session' || row.state === 'tracking' || enginesWith(name),
  ).map(({ name }) => name.split('|').at(-1) ?? '')
  const wildcards = /^(?:JSON\.|V[A-Z]+$|HELP$)/
  const missing = named.filter((name) => !wildcards.test(name) && !new RegExp(`\`(?:[A-Z]+ )?${name}[\` ]`).test(text))
  expect(missing).toEqual([])
})

it.each<[page: string, text: string]>([
  ['limits', `(\`workflowRunIds\`, \`messageIds\`, \`dlqIds\`) | ${whole(limits.MAX_IDS)} |`],
  ['limits', `(\`/v2/dlq\`, \`/v2/workflows/dlq\`) | ${whole(limits.MAX_PAGE_IDS)} |`],
  ['limits', `values of any other filter | ${limits.MAX_FILTER_VALUES} |`],
  ['limits', `one value of a filter | ${whole(limits.MAX_VALUE_LENGTH)} characters |`],
  ['limits', `${limits.MAX_ITEM_HEADERS} fields; ${limits.MAX_ITEM_HEADER_BYTES / 1024} KiB |`],
  ['limits', `parallelism of a queue | ${whole(MAX_PARALLEL)} |`],
  ['limits', `text of a search | ${MAX_SEARCH_LENGTH} characters |`],
  ['limits', `paused as a whole | ${whole(MAX_PAUSED_URL_BYTES)} bytes |`],
  ['workflow', `at most ${whole(MAX_PAUSED_WORKFLOWS)} an account`],
  ['workflow', `sorts the newest ${whole(MAX_SORTED)}`],
  ['workflow', `up to ${whole(MAX_WAITERS)} and 16 MiB`],
  ['bulk-cancel', `An account has at most ${MAX_SAVED_SELECTORS},`],
  ['queue', `| -${GREATEST_PRIORITY} to ${GREATEST_PRIORITY},`],
  ['databases', `1 to ${databases.MAX_NAME_LENGTH} characters`],
  ['databases', `0 to ${whole(databases.MAX_BUDGET)};`],
  ['databases', `(up to ${databases.MAX_IDEMPOTENCY_KEY_LENGTH} characters)`],
  ['databases', `For ${databases.IDEMPOTENCY_KEPT_MS / 3_600_000} hours`],
  ['databases', `Up to ${MAX_ALLOWED_IPS} IPv4 and IPv6 addresses`],
  ['accounts', `An account has at most ${accounts.MAX_API_KEYS} keys`],
  ['accounts', `at most ${MAX_QUEUE_TOKENS} named tokens`],
  ['accounts', `up to ${whole(accounts.MAX_MEMBERS)} members`],
  ['accounts', `the newest ${whole(MAX_AUDIT_SEARCHED)} entries`],
  [
    'alerts',
    `${alerts.MAX_ALERT_CHANNELS} channels and ${alerts.MAX_SILENCES} silences, of ${alerts.MAX_SILENCE_DAYS} days`,
  ],
  ['alerts', `keeps alerts for ${alerts.ALERT_HISTORY_DAYS} days`],
  ['alerts', `has not found the state for ${alerts.CALM_MINUTES} minutes`],
  ['alerts', `\`--group-minutes\` | ${alerts.DEFAULT_GROUP_MINUTES} | 1 to ${whole(alerts.GROUP_MINUTES.most)}.`],
  ['alerts', `\`--hourly\` | ${alerts.DEFAULT_HOURLY_LIMIT} |`],
])('the page %s has the limit: %s', (name, text) => {
  expect(page(name).replaceAll(/\s+/g, ' ')).toContain(text)
})
