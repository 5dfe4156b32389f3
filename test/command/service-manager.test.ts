import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { atCleanup, startHomeport, tempDir, waitFor } from '../support/index.js'

const REAL = '/usr/bin/systemd-notify'
/** Receives datagrams on a Unix socket, which Node cannot do, and prints them. */
const RECEIVER = `import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('bound', flush=True)
while True: print(receiver.recv(4096).decode(), flush=True)`

const hasReceiver = existsSync(REAL) && spawnSync('python3', ['--version']).status === 0

/** What systemd would receive, if this machine has the programs for it. */
async function startReceiver(socket: string): Promise<() => string> {
  if (!hasReceiver) return () => ''
  const receiver = spawn('python3', ['-c', RECEIVER, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  receiver.stdout.setEncoding('utf8').on('data', (part) => (text += part))
  atCleanup(() => void receiver.kill('SIGKILL'))
  await waitFor(() => text.includes('bound'), { what: 'the receiver of notifications' })
  return () => text
}

it('the server tells systemd when everything serves and when the server stops', async () => {
  const folder = tempDir()
  const [socket, calls, program] = [join(folder, 'socket'), join(folder, 'calls'), join(folder, 'systemd-notify')]
  const received = await startReceiver(socket)
  const real = hasReceiver ? `exec ${REAL} --no-block "$@"` : ''
  writeFileSync(program, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >>'${calls}'\n${real}\n`)
  chmodSync(program, 0o755)
  writeFileSync(calls, '')
  const server = await startHomeport({ env: { NOTIFY_SOCKET: socket, PATH: `${folder}:${process.env.PATH}` } })
  await waitFor(() => readFileSync(calls, 'utf8') === `${socket} READY=1\n`, { what: 'the first notification' })
  // Its journal keeps what is printed, and must not hold credentials.
  await waitFor(() => server.logs().includes('homeport env'), { what: 'the line that says how to print them' })
  expect(server.logs()).not.toContain('HOMEPORT_API_KEY=')
  expect(await server.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  const both = `${socket} READY=1\n${socket} STOPPING=1\n`
  await waitFor(() => readFileSync(calls, 'utf8') === both, { what: 'the second notification' })
  if (hasReceiver) await waitFor(() => /READY=1\n.*STOPPING=1\n/s.test(received()), { what: 'the datagrams' })
})
