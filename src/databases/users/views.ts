import { engineRulesOf } from './engine-rules.js'
import type { StoredUser } from './user.js'

/** A reply to an ACL or CONFIG command, independent of the protocol version. */
export type Reply =
  | { readonly kind: 'ok' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'list' | 'set'; readonly items: readonly Reply[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [key: string, value: Reply])[] }

/** `OK`. */
export const OK: Reply = { kind: 'ok' }

/** A text reply. */
export const text = (value: string): Reply => ({ kind: 'text', text: value })

/** A list of text replies. */
export const texts = (values: readonly string[]): Reply => ({ kind: 'list', items: values.map(text) })

/** Texts by their names. */
export const mapOfTexts = (values: ReadonlyMap<string, string>): Reply => ({
  kind: 'map',
  entries: [...values].map(([key, value]) => [key, text(value)]),
})

/** A user as ACL commands show it. */
export interface UserView {
  readonly name: string
  readonly status: 'on' | 'off'
  /** SHA-256 of each password. */
  readonly passwords: readonly string[]
  readonly commands: string
  readonly keys: string
  readonly channels: string
}

/** The built-in users. Their passwords are never shown. */
export const BUILT_IN_VIEWS: readonly UserView[] = [
  { name: 'default', status: 'on', passwords: [], commands: '+@all', keys: '~*', channels: '&*' },
  { name: 'default_ro', status: 'on', passwords: [], commands: '-@all +@read', keys: '%R~*', channels: '' },
]

/** The view of a user that the owner created. */
export function viewOf({ name, status, passwords, commands, keys, channels }: StoredUser): UserView {
  const hashes = passwords.map(({ password }) => password)
  return {
    name,
    status,
    passwords: hashes,
    commands: commands.join(' '),
    keys: keys.join(' '),
    channels: channels.join(' '),
  }
}

/** The reply to ACL GETUSER: five fields, without the engine's selectors (reference redis 3.2). */
export function userReply(view: UserView): Reply {
  return {
    kind: 'map',
    entries: [
      ['flags', { kind: 'set', items: [text(view.status)] }],
      ['passwords', texts(view.passwords)],
      ['commands', text(view.commands)],
      ['keys', text(view.keys)],
      ['channels', text(view.channels)],
    ],
  }
}

/** A line of ACL LIST. */
export function userLine({ name, status, passwords, commands, keys, channels }: UserView): string {
  const hashes = passwords.map((hash) => `#${hash}`)
  return ['user', name, status, ...hashes, keys, channels === '' ? 'resetchannels' : channels, commands]
    .filter((part) => part !== '')
    .join(' ')
}

/** A user as the fleet configures it in engines. */
export function engineUserOf(user: StoredUser): { name: string; password: string; rules: string } {
  return { name: user.name, password: user.secret, rules: engineRulesOf(user) }
}
