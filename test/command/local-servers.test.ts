import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { commandHost, startHomeport, tempDir, waitFor } from '../support/index.js'

/** A person's machine: commands run in the folder of an application, servers keep their data elsewhere. */
function newMachine() {
  const [stateHome, app] = [tempDir(), tempDir()]
  const env = { XDG_STATE_HOME: stateHome, XDG_CONFIG_HOME: tempDir() }
  const folder = join(stateHome, 'homeport/servers')
  const run = commandHost({ env })
  /** The notes of servers; their names are longer than those of other files. */
  const notes = () => (existsSync(folder) ? readdirSync(folder).filter((name) => name.length > 10) : [])
  return {
    app,
    /** A server is healthy a moment before it writes its note. */
    start: async () => {
      const before = notes().length
      const server = await startHomeport({ env })
      await waitFor(() => notes().length > before, { what: 'the note of the server' })
      return server
    },
    homeport: (...args: string[]) => run(args, { cwd: app }),
    folder,
    notes,
  }
}

it('a command finds the only running server from any folder, and no server that was killed', async () => {
  const machine = newMachine()
  const server = await machine.start()
  const env = await machine.homeport('env', '--json')
  expect(JSON.parse(env.stdout)).toMatchObject({ ...server.credentials, apiUrl: server.apiUrl })
  const queues = await machine.homeport('queue', 'messages', 'list', '--json')
  expect({ code: queues.code, stderr: queues.stderr }).toEqual({ code: 0, stderr: '' })
  expect(machine.notes().map((name) => statSync(join(machine.folder, name)).mode & 0o777)).toEqual([0o600])

  // Files that are not notes of a server are ignored.
  for (const [index, content] of ['', '{}', '[1]', '{"dataDir": 1}'].entries())
    writeFileSync(join(machine.folder, `${index}.json`), content)
  const second = await machine.start()
  const unclear = await machine.homeport('status')
  expect(unclear.code).toBe(2)
  for (const { place, apiUrl } of [server, second]) expect(unclear.stderr).toContain(`${place.dataDir} (${apiUrl})`)

  expect(await second.kill('SIGKILL')).toMatchObject({ signal: 'SIGKILL' })
  const status = await machine.homeport('status')
  expect(status).toMatchObject({ code: 0, stderr: '' })
  expect(status.stdout).toMatch(/^health +ok$/m)
  expect(status.stdout).toMatch(/^databases +0 awake, 0 asleep$/m)
  expect(await machine.homeport('ca')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^-----BEGIN CERT/) })
  expect((await machine.homeport('open', '--no-browser')).stdout).toBe(`${server.apiUrl}/\n`)

  // A data directory of the folder itself wins, even if nothing serves from it.
  mkdirSync(join(machine.app, 'homeport-data'))
  expect((await machine.homeport('env')).stderr).toContain('There are no credentials at')
  rmSync(join(machine.app, 'homeport-data'), { recursive: true })

  expect(await server.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  expect(machine.notes()).toHaveLength(1)
  rmSync(second.place.dataDir, { recursive: true })
  expect((await machine.homeport('env')).stderr).toContain('There are no credentials at')
  expect(machine.notes()).toEqual([])
})
