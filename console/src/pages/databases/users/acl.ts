/**
 * Users of a database's data as the pages show them, and as ACL commands say them. Patterns of keys and channels stand
 * in forms without the sign that rules begin with; whoever knows `%R~` may write it all the same.
 */

import { type AclUser, isBuiltIn, userOf } from '../../../../../src/contract/databases/acl-users.js'
import type { Reply } from '../../../lib/resp.js'
import { textOf } from '../../../lib/resp.js'

/** What the form for a user asks for. */
export interface UserValues {
  readonly name: string
  readonly isOn: boolean
  /** One a line. */
  readonly keys: string
  readonly channels: string
  readonly preset: Preset
  /** The rules for commands where none of the presets is meant. */
  readonly commands: string
}

/** What users are mostly allowed to run. */
export const PRESETS = {
  read: { title: 'Read', rules: ['+@read'] },
  write: { title: 'Read and write', rules: ['+@read', '+@write'] },
  all: { title: 'Every command', rules: ['+@all'] },
  own: { title: 'Rules of your own', rules: undefined },
} as const

/** A set of commands that many users are allowed, or none of them. */
export type Preset = keyof typeof PRESETS

/** All presets in the order in which they are offered. */
export const PRESET_NAMES = Object.keys(PRESETS) as Preset[]

/** Reads the answer to `ACL LIST`. */
export const usersOf = (reply: Reply): AclUser[] =>
  reply.kind === 'list' ? reply.items.map((item) => userOf(textOf(item))) : []

const linesOf = (text: string): string[] => text.split(/\s+/).filter((line) => line !== '')

const keyRule = (line: string): string => (/^(~|%(R|W|RW|WR)~)/i.test(line) ? line : `~${line}`)
const channelRule = (line: string): string => (line.startsWith('&') ? line : `&${line}`)

/** What a preset or the user's own rules allow. */
export const commandsOf = ({ preset, commands }: Pick<UserValues, 'preset' | 'commands'>): readonly string[] =>
  PRESETS[preset].rules ?? linesOf(commands)

/** The rules that make a user exactly what a form says, whatever it was before; its passwords stay. */
export function rulesOf(values: UserValues): string[] {
  return [
    values.isOn ? 'on' : 'off',
    'resetkeys',
    ...linesOf(values.keys).map(keyRule),
    'resetchannels',
    ...linesOf(values.channels).map(channelRule),
    '-@all',
    ...commandsOf(values),
  ]
}

/** A form for nobody: may read every key. */
export const NEW_USER: UserValues = { name: '', isOn: true, keys: '*', channels: '', preset: 'read', commands: '' }

/** The form of a user that there is. */
export function valuesOf({ name, isOn, keys, channels, commands }: AclUser): UserValues {
  const words = commands.join(' ')
  const preset = PRESET_NAMES.find((known) => PRESETS[known].rules?.join(' ') === words) ?? 'own'
  return { name, isOn, keys: keys.join('\n'), channels: channels.join('\n'), preset, commands: words }
}

/** What a user may run, in words. */
export function commandsText({ commands }: Pick<AclUser, 'commands'>): string {
  const words = commands.join(' ')
  const preset = PRESET_NAMES.find((known) => PRESETS[known].rules?.join(' ') === words)
  return preset === undefined ? words || 'nothing' : PRESETS[preset].title
}

/** The rules while typing; the server has the last word. */
export const USER_RULES = {
  name: (name: string) =>
    isBuiltIn({ name })
      ? 'Every database has this user already, and it cannot be changed'
      : /^(?!homeport-)[\w.-]{1,64}$/.test(name)
        ? null
        : '1 to 64 letters, digits and the characters _ . -, not beginning with homeport-',
  commands: (commands: string, { preset }: UserValues) =>
    preset !== 'own' || linesOf(commands).every((rule) => /^[+-]@?[a-z]/i.test(rule))
      ? null
      : 'Rules such as +get, -keys, +@hash, with spaces between them',
}
