import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@upstash/qstash'
import { expect, it } from 'vitest'
import { freePort, tempDir, waitFor } from '../../test/support/index.js'
import { startSink } from '../queue/testing/sink.js'
import { runCli } from './index.js'

const TOKEN = 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0='
const KEYS = { current: 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r', next: 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs' }

it('`homeport dev` uses the token and keys of clients in development mode, and delivers', async () => {
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const [queuePort = 0, apiPort = 0, restPort = 0] = ports
  const dataDir = join(tempDir(), 'dev')
  const out: string[] = []
  const io = { out: (text: string) => void out.push(text), err: (text: string) => void out.push(text) }
  const args = ['--queue-port', queuePort, '--api-port', apiPort, '--rest-port', restPort].map(String)
  const ended = runCli(['dev', ...args, '--data-dir', dataDir, '--log-level', 'silent'], io)
  // The command loads the sources of the whole server, which takes long where all cores are busy.
  await waitFor(() => out.join('').includes('Homeport serves'), { what: 'the server to serve', deadlineMs: 100_000 })
  const baseUrl = `http://127.0.0.1:${queuePort}`
  const keys = await fetch(`${baseUrl}/v2/keys`, { headers: { authorization: `Bearer ${TOKEN}` } })
  expect(await keys.json()).toEqual(KEYS)
  const sink = await startSink()
  await new Client({ baseUrl, token: TOKEN }).publishJSON({ url: sink.url, body: {} })
  await waitFor(() => sink.received.length === 1, { what: 'a delivery' })
  await sink.close()
  process.emit('SIGHUP')
  expect(await ended).toBe(0)
  expect(existsSync(join(dataDir, 'credentials.json'))).toBe(true)
})

/** The error of `dev` with a public host and these arguments. */
async function refusalOf(args: readonly string[]): Promise<string> {
  const err: string[] = []
  const io = { out: () => undefined, err: (text: string) => void err.push(text) }
  expect(await runCli(['dev', '--host', '0.0.0.0', '--proxy-terminates-tls', ...args], io)).toBe(2)
  return err.join('')
}

it('`homeport dev` refuses to listen beyond loopback', async () => {
  expect(await refusalOf(['--data-dir', tempDir()])).toMatch(/loopback only/)
})

it('`homeport dev` prefers a given option to its own default, also when the value is the default of `start`', async () => {
  const onItsPort = ['--rest-port', '8080']
  expect(await refusalOf(onItsPort)).toMatch(/restPort.*queuePort.*8080/)
  expect(await refusalOf(['--queue-port', '8702', ...onItsPort])).toMatch(/loopback only/)
})

it('`homeport dev` refuses a directory for data that it would not keep', async () => {
  expect(await refusalOf(['--nodes', '3', '--data-dir', tempDir()])).toMatch(
    /--nodes deletes all data.*combined with --data-dir/,
  )
  expect(await refusalOf(['--ephemeral', '--store', 'sqlite'])).toMatch(
    /--ephemeral deletes all data.*combined with --store/,
  )
})
