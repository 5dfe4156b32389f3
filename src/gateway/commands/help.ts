import { encodeArray, encodeSimple } from '../resp/encode.js'

/** What a subcommand is called with, and what it does. */
type Entry = readonly [call: string, ...does: string[]]

/** Of the containers that the gateway judges subcommand by subcommand: those that it serves. */
const SERVED: Readonly<Record<string, readonly Entry[]>> = {
  ACL: [
    ['CAT [<category>]', 'The categories of commands, or the commands of one.'],
    ['DELUSER <username> [<username> ...]', 'Delete users and close their connections.'],
    ['DRYRUN <username> <command> [<arg> ...]', 'Whether the engine would let a user send a command.'],
    ['GENPASS [<bits>]', 'A random password, of 256 bits unless told otherwise.'],
    ['GENTOKEN <username> [<password>]', 'A token to be given to SETUSER as >token. AUTH takes it as the password.'],
    ['GETUSER <username>', 'What a user may do.'],
    ['LIST', 'All users with their rules.'],
    ['LOAD', 'Nothing is left to load: every change of a user holds at once.'],
    ['LOG [<count> | RESET]', 'Always empty.'],
    ['RESTTOKEN <username> <password>', 'A token of the user for the REST API.'],
    ['SAVE', 'Nothing is left to save: every change of a user is stored at once.'],
    ['SETUSER <username> <rule> [<rule> ...]', 'Make a user, or change one.'],
    ['USERS', 'The names of all users.'],
    ['WHOAMI', 'The name that the connection is logged in with.'],
  ],
  CLIENT: [
    ['CACHING (YES|NO)', 'Whether the next command is tracked, in the modes OPTIN and OPTOUT.'],
    ['CAPA <option> [<option> ...]', 'Accepted; nothing here depends on what a client understands.'],
    ['GETNAME', 'The name of the connection.'],
    ['ID', 'The number of the connection.'],
    ['INFO', 'What is known of the connection.'],
    ['KILL <ip:port>', 'End the connection from that address.'],
    [
      'KILL <option> <value> [<option> <value> [...]]',
      'End every connection that fits all options:',
      '* ADDR <ip:port>, LADDR <ip:port>, ID <client-id>, USER <username>',
      '* TYPE (NORMAL|MASTER|REPLICA|PUBSUB)',
      '* SKIPME (YES|NO): whether this connection is spared (default: yes)',
    ],
    [
      'LIST [options ...]',
      'The connections of the database:',
      '* TYPE (NORMAL|MASTER|REPLICA|PUBSUB)',
      '* ID <client-id> [<client-id> ...]',
    ],
    ['NO-TOUCH (ON|OFF)', 'Whether what the connection reads does not look used.'],
    ['NO-EVICT (ON|OFF)', 'Accepted; no connection is ever evicted.'],
    [
      'PAUSE <timeout> [WRITE|ALL]',
      'Hold commands that write, or all, for so many milliseconds. A later call only extends the pause.',
    ],
    ['REPLY (ON|OFF|SKIP)', 'Whether commands are answered.'],
    ['SETINFO (LIB-NAME|LIB-VER) <value>', 'Tell which library the client uses.'],
    ['SETNAME <name>', 'Name the connection.'],
    [
      'TRACKING (ON|OFF) [REDIRECT <client-id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]',
      'Tell when keys change, in RESP3 or on the connection of another client.',
    ],
    ['TRACKINGINFO', 'What is tracked for the connection.'],
    ['UNBLOCK <client-id> [TIMEOUT|ERROR]', 'End the command that a connection waits in.'],
    ['UNPAUSE', 'End the pause: what is held is carried out.'],
    ['GETREDIR', 'The client that is told of changes: -1 without tracking, 0 for the connection itself.'],
  ],
  COMMAND: [
    ['(no subcommand)', 'How the engine takes all its commands.'],
    ['COUNT', 'How many commands the engine has.'],
    ['DOCS [<command-name> ...]', 'What the engine says of commands, or of all.'],
    ['GETKEYS <full-command>', 'The keys of a command.'],
    ['GETKEYSANDFLAGS <full-command>', 'The keys of a command and what it does to them.'],
    ['INFO [<command-name> ...]', 'How the engine takes commands, or all.'],
    ['LIST', 'The names of the commands that the engine has.'],
  ],
  CONFIG: [
    ['GET <pattern> [<pattern> ...]', 'Settings of the database that fit a pattern.'],
    ['RESETSTAT', 'Let the statistics of INFO begin anew.'],
    ['SET <directive> <value> [<directive> <value> ...]', 'Change settings of the database.'],
  ],
  MEMORY: [
    ['DOCTOR', 'What the engine thinks of how it uses its memory.'],
    ['USAGE <key> [SAMPLES <count>]', 'About how many bytes a key and its value take.'],
  ],
  SCRIPT: [
    ['EXISTS <sha1> [<sha1> ...]', 'Whether scripts are known.'],
    ['FLUSH [ASYNC|SYNC]', 'Forget all scripts.'],
    ['KILL', 'Answered NOTBUSY: scripts that take too long are ended without being asked.'],
    ['LOAD <script>', 'Make a script known without running it.'],
    ['SHOW <sha1>', 'The text of a script, where the engine is Valkey 8.0 or newer.'],
  ],
}

/** The reply to `HELP` of a container, given the subcommand's row such as `CLIENT|HELP`; undefined for other rows. */
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
