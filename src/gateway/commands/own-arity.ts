/**
 * How many arguments the commands take that no engine answers, their name counted in (a subcommand's name is two), as
 * an engine would say it: `[least, most]`.
 */
const ARITIES: Readonly<Record<string, readonly [least: number, most: number]>> = {
  AUTH: [2, Infinity],
  READONLY: [1, 1],
  READWRITE: [1, 1],
  RESET: [1, 1],
  SELECT: [2, 2],
  'CLIENT|CAPA': [3, Infinity],
  'CLIENT|GETNAME': [2, 2],
  'CLIENT|HELP': [2, 2],
  'CLIENT|ID': [2, 2],
  'CLIENT|INFO': [2, 2],
  'CLIENT|KILL': [3, Infinity],
  'CLIENT|LIST': [2, Infinity],
  'CLIENT|NO-EVICT': [3, 3],
  'CLIENT|PAUSE': [3, 4],
  'CLIENT|REPLY': [3, 3],
  'CLIENT|SETINFO': [4, 4],
  'CLIENT|SETNAME': [3, 3],
  'CLIENT|UNBLOCK': [3, 4],
  'CLIENT|UNPAUSE': [2, 2],
  'ACL|DELUSER': [3, Infinity],
  'ACL|GENTOKEN': [3, 4],
  'ACL|GETUSER': [3, 3],
  'ACL|HELP': [2, 2],
  'ACL|LIST': [2, 2],
  'ACL|LOAD': [2, 2],
  'ACL|LOG': [2, Infinity],
  'ACL|RESTTOKEN': [4, 4],
  'ACL|SAVE': [2, 2],
  'ACL|SETUSER': [3, Infinity],
  'ACL|USERS': [2, 2],
  'ACL|WHOAMI': [2, 2],
  'COMMAND|HELP': [2, 2],
  'CONFIG|GET': [3, Infinity],
  'CONFIG|HELP': [2, 2],
  'CONFIG|SET': [4, Infinity],
  'MEMORY|HELP': [2, 2],
  'SCRIPT|HELP': [2, 2],
}

/** What is wrong with the number of arguments of a command that no engine answers; undefined when nothing is. */
export function arityProblem(name: string, argumentCount: number): string | undefined {
  const [least, most] = ARITIES[name] ?? [0, Infinity]
  if (argumentCount >= least && argumentCount <= most) return undefined
  return wrongArityText(name.toLowerCase())
}

/** The engine's words for a wrong number of arguments, without the error's first word. */
export function wrongArityText(command: string): string {
  return `wrong number of arguments for '${command}' command`
}
