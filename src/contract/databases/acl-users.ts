/** Users of a database's data, as `ACL LIST` tells them and as `ACL SETUSER` takes them. */

/** A user. */
export interface AclUser {
  readonly name: string
  readonly isOn: boolean
  /** How many passwords it has. */
  readonly passwords: number
  /** Patterns without the sign that rules begin with: `news:*`; one that says more keeps it: `%R~seen:*`. */
  readonly keys: readonly string[]
  readonly channels: readonly string[]
  /** The rules for commands, each over those before it, without the `-@all` that they begin with. */
  readonly commands: readonly string[]
}

/** What opens a database for a user. It can be read once, when it is made. */
export interface AclSecrets {
  readonly name: string
  /** Taken by `AUTH`, and by `ACL RESTTOKEN`. */
  readonly password: string
  readonly restToken: string
}

/** The users that every database has; nobody can change them. */
const BUILT_IN = new Set(['default', 'default_ro'])

/** Whether every database has this user. */
export const isBuiltIn = ({ name }: Pick<AclUser, 'name'>): boolean => BUILT_IN.has(name)

/** Reads a line of `ACL LIST`: `user alice on #… ~news:* resetchannels -@all +@read`. */
export function userOf(line: string): AclUser {
  const [, name = '', status, ...rules] = line.split(' ')
  return {
    name,
    isOn: status === 'on',
    passwords: rules.filter((rule) => rule.startsWith('#')).length,
    keys: rules.filter((rule) => /^[~%]/.test(rule)).map((rule) => withoutSign(rule, '~')),
    channels: rules.filter((rule) => rule.startsWith('&')).map((rule) => withoutSign(rule, '&')),
    commands: rules.filter((rule) => /^[+-]/.test(rule) && rule !== '-@all'),
  }
}

/** A pattern that itself begins like a rule keeps its sign, so that it is read as it was meant. */
function withoutSign(rule: string, sign: '~' | '&'): string {
  const pattern = rule.slice(1)
  return rule.startsWith(sign) && !/^[~%&]/.test(pattern) ? pattern : rule
}

/** Answers a command as text. */
export type AskAcl = (...words: string[]) => Promise<string>

/** Sets rules together with a password that nobody could guess, and answers what it opens. For `default` alone. */
export async function giveSecrets(ask: AskAcl, name: string, rules: readonly string[]): Promise<AclSecrets> {
  const password = await ask('ACL', 'GENTOKEN', name)
  await ask('ACL', 'SETUSER', name, ...rules, `>${password}`)
  return { name, password, restToken: await ask('ACL', 'RESTTOKEN', name, password) }
}
