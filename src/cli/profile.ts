import { Command } from 'commander'
import { DONE, type ExitCode } from './exit-codes.js'
import type { Io } from './io.js'
import { profileNamed, readProfiles, writeProfiles } from './remote/profiles.js'
import { addExamples, type CommandMaker, group } from './remote/remote.js'
import { type Column, renderFacts, renderTable } from './terminal/table.js'

/** Declares a command on the profiles of this user. */
const profileAction =
  (
    name: string,
    argument: string,
    summary: string,
    run: (io: Io, name: string, isJson: boolean) => Promise<void>,
  ): CommandMaker =>
  (io: Io, end: (code: ExitCode) => void): Command => {
    const command = new Command(name).description(summary).option('--json', 'print JSON', false)
    addExamples(command, [`homeport profile ${name}${argument === '' ? '' : ' prod'}`])
    if (argument !== '') command.argument(argument, 'name of the profile')
    return command.action(async (...given: unknown[]) => {
      const [first] = given
      await run(io, typeof first === 'string' ? first : '', command.opts<{ json: boolean }>().json)
      end(DONE)
    })
  }

const listCommand = profileAction(
  'list',
  '',
  'list profiles; an asterisk marks the current one',
  async (io, _, isJson) => {
    const { profiles, current } = await readProfiles()
    const rows = Object.entries(profiles).map(([name, { apiUrl, email }]) => ({
      name,
      apiUrl,
      email,
      current: name === current,
    }))
    if (isJson) return io.out(`${JSON.stringify(rows, undefined, 2)}\n`)
    if (rows.length === 0) return io.out('There are no profiles. Create one: homeport login\n')
    const columns: Column<(typeof rows)[number]>[] = [
      { title: '', value: (one) => (one.current ? '*' : '') },
      { title: 'NAME', value: (one) => one.name },
      { title: 'SERVER', cuts: true, value: (one) => one.apiUrl },
      { title: 'E-MAIL', value: (one) => one.email },
    ]
    io.out(renderTable(io, columns, rows))
  },
)

const showCommand = profileAction('show', '<name>', 'show a profile without its secrets', async (io, name, isJson) => {
  const { apiUrl, email, queueUrl } = profileNamed(await readProfiles(), name)
  const shown = { name, apiUrl, email, ...(queueUrl !== undefined && { queueUrl }) }
  io.out(isJson ? `${JSON.stringify(shown, undefined, 2)}\n` : renderFacts(io, Object.entries(shown)))
})

const useCommand = profileAction(
  'use',
  '[name]',
  'use this profile from now on; without a name, the server of the local data directory',
  async (io, name, isJson) => {
    const all = await readProfiles()
    const isLocal = name === ''
    if (!isLocal) profileNamed(all, name)
    await writeProfiles({ profiles: all.profiles, ...(!isLocal && { current: name }) })
    const message = isLocal ? 'the local data directory is used from now on' : `profile "${name}" is used from now on`
    io.out(isJson ? `${JSON.stringify({ current: isLocal ? null : name })}\n` : `${message}\n`)
  },
)

const deleteCommand = profileAction('delete', '<name>', 'delete a profile', async (io, name, isJson) => {
  const all = await readProfiles()
  profileNamed(all, name)
  const { [name]: _, ...profiles } = all.profiles
  await writeProfiles({ profiles, ...(all.current !== undefined && all.current !== name && { current: all.current }) })
  io.out(isJson ? `${JSON.stringify({ deleted: name })}\n` : `deleted ${name}\n`)
})

/** `homeport profile`. */
export const profileCommand = group('profile', 'saved servers of this user; `homeport login` adds one', [
  listCommand,
  showCommand,
  useCommand,
  deleteCommand,
])
