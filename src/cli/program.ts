import { Command } from 'commander'
import { VERSION } from '../base/index.js'
import { EXIT_CODES_HELP, type ExitCode } from './exit-codes.js'
import { setHelp, withCompletions } from './help.js'
import type { Io } from './io.js'
import type { CommandMaker } from './remote/remote.js'

/** A command by name. It is loaded only when it is called, so that every command starts fast. */
interface Entry {
  readonly name: string
  readonly summary: string
  readonly section: 'This machine:' | 'A server:' | 'This command line:'
  readonly load: () => Promise<CommandMaker>
}

const here = 'This machine:'
const server = 'A server:'
const self = 'This command line:'

/** Every command, in the order of the help. */
const ENTRIES: readonly Entry[] = [
  entry('start', 'run the server until SIGTERM or Ctrl-C', here, async () => (await import('./start.js')).startCommand),
  entry('dev', 'run the server for development', here, async () => (await import('./dev.js')).devCommand),
  entry(
    'doctor',
    'check everything the server depends on',
    here,
    async () => (await import('./doctor.js')).doctorCommand,
  ),
  entry(
    'env',
    'print addresses and credentials for client programs',
    here,
    async () => (await import('./env.js')).envCommand,
  ),
  entry('upgrade', 'check for a newer version', here, async () => (await import('./upgrade.js')).upgradeCommand),
  entry('ca', 'print the certificate of the local authority', here, async () => (await import('./ca.js')).caCommand),
  entry(
    'credentials',
    'replace lost credentials',
    here,
    async () => (await import('./credentials.js')).credentialsCommand,
  ),
  entry(
    'store',
    'copy or upgrade the store of a stopped server',
    here,
    async () => (await import('./store/index.js')).storeCommand,
  ),
  entry(
    'backup',
    'back up the whole service (operator)',
    server,
    async () => (await import('./backup/index.js')).backupCommand,
  ),
  entry(
    'restore',
    'create a data directory from a backup of the whole service',
    here,
    async () => (await import('./backup/restore.js')).restoreCommand,
  ),
  entry(
    'status',
    'health, load and problems of the server',
    server,
    async () => (await import('./status.js')).statusCommand,
  ),
  entry('logs', 'the log of the server (operator)', server, async () => (await import('./logs.js')).logsCommand),
  entry('open', 'open the console in a browser', server, async () => (await import('./open.js')).openCommand),
  entry('db', 'databases', server, async () => (await import('./db/index.js')).dbCommand),
  entry(
    'queue',
    'messages, queues, schedules, dead letters',
    server,
    async () => (await import('./queue/index.js')).queueCommand,
  ),
  entry('runs', 'workflow runs', server, async () => (await import('./runs/index.js')).runsCommand),
  entry(
    'workflows',
    'pause and resume workflows',
    server,
    async () => (await import('./workflows/index.js')).workflowsCommand,
  ),
  entry('bulk', 'bulk actions', server, async () => (await import('./bulk/index.js')).bulkCommand),
  entry(
    'alerts',
    'alerts: rules, channels, silences and history',
    server,
    async () => (await import('./alerts/index.js')).alertsCommand,
  ),
  entry('keys', 'API keys', server, async () => (await import('./account/keys.js')).keysCommand),
  entry(
    'accounts',
    'accounts of others (operator)',
    server,
    async () => (await import('./account/accounts.js')).accountsCommand,
  ),
  entry('nodes', 'nodes of a cluster (operator)', server, async () => (await import('./nodes/index.js')).nodesCommand),
  entry('teams', 'teams and their members', server, async () => (await import('./account/teams.js')).teamsCommand),
  entry(
    'bench',
    'measure the server under load and compare it with the cost model',
    server,
    async () => (await import('./bench/index.js')).benchCommand,
  ),
  entry('audit', 'the audit log', server, async () => (await import('./account/audit.js')).auditCommand),
  entry(
    'login',
    'save the credentials of a server as a profile',
    self,
    async () => (await import('./login.js')).loginCommand,
  ),
  entry('profile', 'switch between servers', self, async () => (await import('./profile.js')).profileCommand),
  entry(
    'completion',
    'print a completion script for a shell',
    self,
    async () => (await import('./completion.js')).completionCommand,
  ),
]

function entry(name: string, summary: string, section: Entry['section'], load: Entry['load']): Entry {
  return { name, summary, section, load }
}

/** The part of the help for new users. */
const BEGINNING = `
To begin:
  homeport start                  serves; the first start prints credentials
  homeport open                   opens the console, which asks for them
  homeport db create --name shop  makes a database
  homeport env --database shop    prints what its clients need
  homeport db --help              shows the help of a command
`

/** The whole command line. It loads only the command in `args`, and all commands for `completion`. */
export async function makeProgram(args: readonly string[], io: Io, end: (code: ExitCode) => void): Promise<Command> {
  const program = new Command('homeport')
    .description('Redis-compatible databases, a durable HTTP queue and durable workflows in one process')
    .version(VERSION)
    .addHelpText('after', BEGINNING + EXIT_CODES_HELP)
    // Flags after the name of a command belong to it: `backup` and `backup list` have flags of the same names.
    .enablePositionalOptions()
    .helpCommand('help [command]', 'show the help of a command')
  const wanted = calledIn(args)
  for (const found of ENTRIES) {
    const isWanted = wanted.includes(found.name) || wanted.includes('completion')
    const command = isWanted ? (await found.load())(io, end) : new Command(found.name)
    program.addCommand(command.summary(found.summary).helpGroup(found.section))
  }
  captureOutput(program, io)
  setHelp(program)
  return program
}

/** The first two words that are not flags: they may be command names, as in `help db`. */
const calledIn = (args: readonly string[]): string[] => args.filter((word) => !word.startsWith('-')).slice(0, 2)

function captureOutput(command: Command, io: Io): void {
  const width = io.terminal?.columns()
  command
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => write(withCompletions(command, text)),
      ...(width !== undefined && { getOutHelpWidth: () => width, getErrHelpWidth: () => width }),
    })
    .exitOverride()
  for (const inner of command.commands) captureOutput(inner, io)
}
