import { encodeArray, encodeSimple } from '../resp/encode.js'

/** How a subcommand is called, and what it does. */
type Entry = readonly [call: string, ...does: string[]]

/** The subcommands that the gateway serves, for containers whose subcommands it checks itself. */
const SERVED: Readonly<Record<string, readonly Entry[]>> = {
  ACL: [
    ['CAT [<category>]', 'The categories of commands, or the commands of one.'],
    ['DELUSER <username> [<username> ...]', 'Delete users and close their connections.'],
    ['DRYRUN <username> <command> [<arg> ...]', 'Whether a user may run a command.'],
    ['GENPASS [<bits>]', 'A random password, of 256 bits by default.'],
    ['GENTOKEN <username> [<password>]', 'A token to set with SETUSER as >token. AUTH accepts it as the password.'],
    ['GETUSER <username>', 'What a user may do.'],
    ['LIST', 'All users with their rules.'],
    ['LOAD', 'Does nothing: every change of a user takes effect at once.'],
    ['LOG [<count> | RESET]', 'Always empty.'],
    ['RESTTOKEN <username> <password>', 'A token of the user for the REST API.'],
    ['SAVE', 'Does nothing: every change of a user is stored at once.'],
    ['SETUSER <username> <rule> [<rule> ...]', 'Create or change a user.'],
    ['USERS', 'The names of all users.'],
    ['WHOAMI', 'The user that the connection is logged in as.'],
  ],
  CLIENT: [
    ['CACHING (YES|NO)', 'Whether the next command is tracked, in the modes OPTIN and OPTOUT.'],
    ['CAPA <option> [<option> ...]', 'Accepted, and has no effect.'],
    ['GETNAME', 'The name of the connection.'],
    ['ID', 'The id of the connection.'],
    ['INFO', 'The state of the connection.'],
    ['KILL <ip:port>', 'Close the connection from that address.'],
    [
      'KILL <option> <value> [<option> <value> [...]]',
      'Close every connection that matches all options:',
      '* ADDR <ip:port>, LADDR <ip:port>, ID <client-id>, USER <username>',
      '* TYPE (NORMAL|MASTER|REPLICA|PUBSUB)',
      '* SKIPME (YES|NO): whether to skip this connection (default: yes)',
    ],
    [
      'LIST [options ...]',
      'The connections of the database:',
      '* TYPE (NORMAL|MASTER|REPLICA|PUBSUB)',
      '* ID <client-id> [<client-id> ...]',
    ],
    ['NO-TOUCH (ON|OFF)', 'Whether reads of the connection leave the access time of keys unchanged.'],
    ['NO-EVICT (ON|OFF)', 'Accepted; no connection is ever evicted.'],
    [
      'PAUSE <timeout> [WRITE|ALL]',
      'Hold commands that write, or all, for a time in milliseconds. A later call only extends the pause.',
    ],
    ['REPLY (ON|OFF|SKIP)', 'Whether the connection gets replies.'],
    ['SETINFO (LIB-NAME|LIB-VER) <value>', 'Set the name or version of the client library.'],
    ['SETNAME <name>', 'Set the name of the connection.'],
    [
      'TRACKING (ON|OFF) [REDIRECT <client-id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]',
      'Send invalidations when keys change, in RESP3 or to another client.',
    ],
    ['TRACKINGINFO', 'The tracking state of the connection.'],
    ['UNBLOCK <client-id> [TIMEOUT|ERROR]', 'End the blocking command of a connection.'],
    ['UNPAUSE', 'End the pause, and run the commands that it holds.'],
    ['GETREDIR', 'The id of the client that gets the invalidations: -1 without tracking, 0 for the connection itself.'],
  ],
  COMMAND: [
    ['(no subcommand)', 'Details of all commands of the engine.'],
    ['COUNT', 'The number of commands of the engine.'],
    ['DOCS [<command-name> ...]', 'The documentation of commands, or of all.'],
    ['GETKEYS <full-command>', 'The keys of a command.'],
    ['GETKEYSANDFLAGS <full-command>', 'The keys of a command, and how it accesses them.'],
    ['INFO [<command-name> ...]', 'Details of commands, or of all.'],
    ['LIST', 'The names of the commands of the engine.'],
  ],
  CONFIG: [
    ['GET <pattern> [<pattern> ...]', 'Settings of the database that match a pattern.'],
    ['RESETSTAT', 'Reset the statistics of INFO.'],
    ['SET <directive> <value> [<directive> <value> ...]', 'Change settings of the database.'],
  ],
  MEMORY: [
    ['DOCTOR', 'A report of the engine about its memory.'],
    ['USAGE <key> [SAMPLES <count>]', 'The estimated bytes of a key and its value.'],
  ],
  SCRIPT: [
    ['EXISTS <sha1> [<sha1> ...]', 'Whether scripts are loaded.'],
    ['FLUSH [ASYNC|SYNC]', 'Forget all scripts.'],
    ['KILL', 'Answers NOTBUSY: scripts that run too long are ended automatically.'],
    ['LOAD <script>', 'Load a script without running it.'],
    ['SHOW <sha1>', 'The text of a script. Needs Valkey 8.0 or newer.'],
  ],
}

/** The reply to `HELP` of a container, for a row such as `CLIENT|HELP`; undefined for other rows. */
export function helpReply(name: string): Buffer | undefined {
  const [container = '', subcommand] = name.split('|')
  const entries = subcommand === 'HELP' ? SERVED[container] : undefined
  if (!entries) return undefined
  const lines = [...entries, ['HELP', 'Prints this help.']].flatMap(([call = '', ...does]) => [
    call,
    ...does.map((line) => `    ${line}`),
  ])
  const title = `${container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:`
  return encodeArray([title, ...lines].map(encodeSimple))
}
