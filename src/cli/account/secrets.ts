import { type Command, InvalidArgumentError } from 'commander'
import { parseDuration } from '../../base/index.js'
import type { RotateBody } from '../../contract/accounts/credentials.js'
import type { Io } from '../io.js'
import { given } from '../remote/values.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { renderFacts } from '../terminal/table.js'

/** Flags, columns and texts that the commands for API keys and for queue tokens share. */

/** A duration such as `90d`, as whole seconds. */
export function secondsOf(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined || ms % 1000 !== 0)
    throw new InvalidArgumentError('Expected a duration such as 90d, 12h or 30s.')
  return ms / 1000
}

/** The flags of a rotation. */
export interface RotateOptions {
  readonly overlap?: number
  readonly expires?: number
}

/** Adds the flags of a rotation. */
export const rotateFlags = (command: Command): Command =>
  command
    .option(
      '--overlap <duration>',
      'how long the old secret is still accepted; 0s: not at all (default: 1d)',
      secondsOf,
    )
    .option('--expires <duration>', 'only if it expires: the new expiry, from now', secondsOf)

/** The body of a rotation with these flags. */
export const rotateBodyOf = ({ overlap, expires }: RotateOptions): RotateBody => given({ overlap, expires_in: expires })

interface Validity {
  readonly expires_at?: number
  readonly last_used_at?: number
  readonly previous_valid_until?: number
}

const moment = (seconds: number | undefined): string => momentOfSeconds(seconds) ?? ''

/** The columns that keys and tokens share. */
export const validityColumns = [
  { isExtra: true, title: 'LAST USED', value: (one: Validity) => moment(one.last_used_at) },
  { isExtra: true, title: 'EXPIRES', value: (one: Validity) => moment(one.expires_at) },
]

/** The text that shows a new secret to a person. */
export function newSecret(
  io: Io,
  { id, name, ...validity }: Validity & { readonly id: string; readonly name: string },
  secret: [string, string],
): string {
  return renderFacts(io, [
    ['name', name],
    ['id', id],
    secret,
    ['expires', moment(validity.expires_at)],
    ['old secret accepted until', moment(validity.previous_valid_until)],
    ['', 'Store it now: it is not shown again.'],
  ])
}
