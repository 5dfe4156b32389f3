/**
 * Database users as the pages show them and as ACL rules. In forms, patterns of keys and channels have no
 * prefix character; `%R~` and similar prefixes are accepted as well.
 */

import { type AclUser, isBuiltIn, userOf } from '../../../../../src/contract/databases/acl-users.js'
import type { Reply } from '../../../lib/resp.js'
import { textOf } from '../../../lib/resp.js'

/** The values of the user form. */
export interface UserValues {
  readonly name: string
  readonly isOn: boolean
  /** One a line. */
  readonly keys: string
  readonly channels: string
  readonly preset: Preset
  /** The command rules if no preset is selected. */
  readonly commands: string
}

/** Common sets of command rules. */
export const PRESETS = {
  read: { title: 'Read', rules: ['+@read'] },
  write: { title: 'Read and write', rules: ['+@read', '+@write'] },
  all: { title: 'Every command', rules: ['+@all'] },
  own: { title: 'Custom rules', rules: undefined },
} as const

/** A preset, or custom rules. */
export type Preset = keyof typeof PRESETS

/** All presets in display order. */
export const PRESET_NAMES = Object.keys(PRESETS) as Preset[]

/** Parses the reply to `ACL LIST`. */
export const usersOf = (reply: Reply): AclUser[] =>
  reply.kind === 'list' ? reply.items.map((item) => userOf(textOf(item))) : []

const linesOf = (text: string): string[] => text.split(/\s+/).filter((line) => line !== '')

const keyRule = (line: string): string => (/^(~|%(R|W|RW|WR)~)/i.test(line) ? line : `~${line}`)
const channelRule = (line: string): string => (line.startsWith('&') ? line : `&${line}`)

/** The command rules of a preset, or the custom ones. */
const commandsOf = ({ preset, commands }: Pick<UserValues, 'preset' | 'commands'>): readonly string[] =>
  PRESETS[preset].rules ?? linesOf(commands)

/** The rules that give a user exactly the rights in the form, regardless of its earlier rights. Its passwords stay. */
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

/** The form of a new user: may read every key. */
export const NEW_USER: UserValues = { name: '', isOn: true, keys: '*', channels: '', preset: 'read', commands: '' }

/** The form of an existing user. */
export function valuesOf({ name, isOn, keys, channels, commands }: AclUser): UserValues {
  const words = commands.join(' ')
  const preset = PRESET_NAMES.find((known) => PRESETS[known].rules?.join(' ') === words) ?? 'own'
  return { name, isOn, keys: keys.join('\n'), channels: channels.join('\n'), preset, commands: words }
}

/** The commands that a user may run, as text. */
export function commandsText({ commands }: Pick<AclUser, 'commands'>): string {
  const words = commands.join(' ')
  const preset = PRESET_NAMES.find((known) => PRESETS[known].rules?.join(' ') === words)
  return preset === undefined ? words || 'nothing' : PRESETS[preset].title
}

/** Validation while typing; the server validates again. */
export const USER_RULES = {
  name: (name: string) =>
    isBuiltIn({ name })
      ? 'This name belongs to a built-in user'
      : /^(?!homeport-)[\w.-]{1,64}$/.test(name)
        ? null
        : '1 to 64 letters, digits and the characters _ . -, not beginning with homeport-',
  commands: (commands: string, { preset }: UserValues) =>
    preset !== 'own' || linesOf(commands).every((rule) => /^[+-]@?[a-z]/i.test(rule))
      ? null
      : 'Write rules such as +get, -keys, +@hash, separated by spaces',
}
