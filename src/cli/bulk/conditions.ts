import type { Command } from 'commander'
import type { Static } from 'typebox'
import type { CancelSelector } from '../../contract/bulk/actions.js'
import { durationText, given, list, repeated, wholeNumber } from '../remote/values.js'
import { counted } from '../terminal/figures.js'

/** The flags for conditions on items, and for saved selectors. */

/** Options of conditions. */
export interface ConditionOptions {
  readonly state?: string[]
  readonly waitingFor?: string[]
  readonly olderThan?: string
  readonly youngerThan?: string
  readonly attemptsAtLeast?: number
  readonly attemptsAtMost?: number
  readonly error?: string[]
  readonly payload?: string
  readonly saved?: string
}

/** Adds the flags of conditions. */
export const conditionFlags = (command: Command): Command =>
  command
    .optionsGroup('Conditions on the items that pass the filters:')
    .option('--state <states>', 'that are in one of these states, such as sleeping, event, retry or in-delivery', list)
    .option('--waiting-for <name>', 'that wait for this event or step; may be repeated', repeated)
    .option('--older-than <duration>', 'created, or failed for good, longer ago than this', durationText)
    .option('--younger-than <duration>', 'created, or failed for good, less long ago than this', durationText)
    .option('--attempts-at-least <number>', 'with at least this many failed attempts', wholeNumber(0))
    .option('--attempts-at-most <number>', 'with at most this many failed attempts', wholeNumber(0))
    .option('--error <text>', 'whose last error contains this text; may be repeated', repeated)
    .option('--payload <expression>', `whose JSON payload matches, such as '$.total > 100 and $.country = "DE"'`)
    .option('--saved <name>', 'a saved selector; further filters narrow it')
    .optionsGroup('Options:')

type Selector = Static<typeof CancelSelector>

/** Conditions as fields of a selector. The server refuses those that a kind does not have. */
export function conditionsOf(options: ConditionOptions) {
  const { waitingFor, olderThan, youngerThan, attemptsAtLeast, attemptsAtMost, error, payload, saved } = options
  return given({
    // The server validates the values and lists the valid ones.
    state: options.state as Selector['state'],
    waitingFor,
    olderThan,
    youngerThan,
    attemptsAtLeast,
    attemptsAtMost,
    errorContains: error,
    payload,
    saved,
  })
}

/** The line about items that could not be tested; empty if there are none. */
export const unreadableLine = ({ unreadable = 0 }: { readonly unreadable?: number | undefined }): string =>
  unreadable === 0 ? '' : `${counted(unreadable, 'item')} could not be read and so did not match.\n`
