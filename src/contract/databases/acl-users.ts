/** Reads the ACL users of a database from `ACL LIST`, and creates secrets for them with `ACL SETUSER`. */

/** An ACL user. */
export interface AclUser {
  readonly name: string
  readonly isOn: boolean
  /** Number of passwords. */
  readonly passwords: number
  /** Key patterns without the `~` of the rule: `news:*`. A pattern with permissions keeps its prefix: `%R~seen:*`. */
  readonly keys: readonly string[]
  readonly channels: readonly string[]
  /** Command rules in their order, without the leading `-@all`. */
  readonly commands: readonly string[]
}

/** The secrets of a user. They can be read only when they are created. */
export interface AclSecrets {
  readonly name: string
  /** For `AUTH` and `ACL RESTTOKEN`. */
  readonly password: string
  readonly restToken: string
}

/** The users of every database, which cannot be changed. */
const BUILT_IN = new Set(['default', 'default_ro'])

/** Whether this is a user that every database has. */
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

/** Removes the prefix of a rule. Keeps it if the pattern itself begins like a rule, which would be misread. */
function withoutSign(rule: string, sign: '~' | '&'): string {
  const pattern = rule.slice(1)
  return rule.startsWith(sign) && !/^[~%&]/.test(pattern) ? pattern : rule
}

/** Runs a command and returns its reply as text. */
export type AskAcl = (...words: string[]) => Promise<string>

/** Sets rules and a new random password for a user, and returns the secrets. Only the user `default` may do this. */
export async function giveSecrets(ask: AskAcl, name: string, rules: readonly string[]): Promise<AclSecrets> {
  const password = await ask('ACL', 'GENTOKEN', name)
  await ask('ACL', 'SETUSER', name, ...rules, `>${password}`)
  return { name, password, restToken: await ask('ACL', 'RESTTOKEN', name, password) }
}
