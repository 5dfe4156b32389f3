/** Entries of the audit log as sentences. */
import type { AuditLog } from '../../../../src/contract/accounts/audit.js'

/** An entry in words: who, did what, to which thing. */
export interface Change {
  readonly actor: string
  /** Such as `created the database` or `reset database password:`. */
  readonly did: string
  /** The name of the thing, or its id; empty if `did` names it already. */
  readonly thing: string
  /** The page of the thing; `undefined` if it has none. */
  readonly to: string | undefined
}

/** Nouns that precede a name without a colon. */
const THINGS = ['database', 'API key', 'queue token', 'team', 'account', 'queue']
const IRREGULAR: Readonly<Record<string, string>> = { Reset: 'reset', Set: 'set', Undo: 'undid', Cancel: 'cancelled' }

/** The page of what an action changed, by the words in its name. */
const PAGES: readonly (readonly [RegExp, (entity: string) => string])[] = [
  [/Database|Backup$/, (id) => `/databases/${id}`],
  [/Bulk Selector/, () => '/bulk-actions/new'],
  [/API Key/, () => '/api-keys'],
  [/Queue Token/, () => '/queue-tokens'],
  [/Team/, () => '/team'],
  [/Alert/, () => '/alerts'],
  [/Account/, () => '/accounts'],
  [/Change Queue/, () => '/queues'],
  [/Signing Keys/, () => '/signing-keys'],
]

function pageOf(action: string, entity: string): string | undefined {
  if (/^wfr_/.test(entity)) return `/runs/${encodeURIComponent(entity)}`
  if (/^bulk_/.test(entity)) return `/bulk-actions/${entity}`
  // A deleted database has no page.
  if (/^Delete Database/.test(action)) return undefined
  return PAGES.find(([known]) => known.test(action))?.[1](entity)
}

function pastOf(verb: string): string {
  const known = IRREGULAR[verb]
  if (known !== undefined) return known
  const small = verb.toLowerCase()
  if (small.endsWith('e')) return `${small}d`
  return small.endsWith('y') ? `${small.slice(0, -1)}ied` : `${small}ed`
}

/** Small letters, except for abbreviations. */
const nounOf = (words: readonly string[]): string =>
  words.map((word) => (word === word.toUpperCase() ? word : word.toLowerCase())).join(' ')

/** An entry of the audit log in words. */
export function changeOf({ action_string, actor, entity, entity_name }: AuditLog): Change {
  const [verb = '', ...rest] = action_string.split(' ')
  const noun = nounOf(rest)
  const thing = entity_name ?? (entity === 'NA' ? '' : entity)
  const isThing = THINGS.includes(noun)
  return {
    actor: actor === 'homeport' ? 'Homeport' : actor,
    did: `${pastOf(verb)} ${isThing ? 'the ' : ''}${noun}${isThing || thing === '' ? '' : ':'}`,
    thing,
    to: pageOf(action_string, entity),
  }
}
