import { readFileSync } from 'node:fs'
import type { TObject } from 'typebox'
import { expect, it } from 'vitest'
import { ALERT_KINDS, ruleShape } from './alerts/kinds.js'
import { BULK_KINDS, BULK_STATES, CancelSelector } from './bulk/actions.js'
import { Outcome } from './bulk/answers.js'
import { CONDITION_NAMES, MESSAGE_STANDINGS, RUN_STANDINGS } from './bulk/conditions.js'
import { COMMANDS, enginesWith } from './databases/commands.js'
import { deleteDeadLetters } from './queue/dead-letters.js'
import { cancelMessages } from './queue/messages.js'
import { Because } from './workflow/because.js'
import { deleteDeadRuns } from './workflow/dead-letters.js'
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
function fieldsOf({ properties = {} }: Partial<TObject> = {}): string[] {
  const isAlias = (field: object): boolean =>
    'description' in field && /^(?:Older|Other|The same)/.test(String(field.description))
  return Object.entries(properties).flatMap(([name, field]) => (isAlias(field) ? [] : [name]))
}

it.each<[what: string, names: readonly string[], text: string]>([
  ['filters of runs', fieldsOf(listRunMessageLogs.query), page('workflow', 'Logs')],
  ['filters of failed runs', fieldsOf(deleteDeadRuns.query), page('workflow', 'Dead letters')],
  ['reasons why a run waits', Because.properties.kind.enum, firstCells('workflow', 'Why a run waits')],
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

it.each(ALERT_KINDS)('the documentation has the alert rule %s with its threshold', (kind) => {
  const { threshold } = ruleShape(kind)
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
