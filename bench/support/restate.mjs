/**
 * Restate as a separate process: the server of its npm package, with its defaults, and an endpoint with a service of
 * five durable steps. Sends `{ingressUrl, adminUrl}` on its IPC channel.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttp2 } from 'node:http2'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { endpoint, service } from '@restatedev/restate-sdk'

const STEPS = 5

// The SDK requires this function of newer Node versions.
Promise.withResolvers ??= () => {
  const parts = {}
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }))
  return parts
}

async function freePort() {
  const server = createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  server.close()
  return port
}

const fiveSteps = service({
  name: 'bench',
  handlers: {
    run: async (context) => {
      for (let step = 1; step <= STEPS; step++) await context.run(`step ${step}`, () => 'result')
      return 'done'
    },
  },
})
const program = createHttp2(endpoint().bind(fiveSteps).http2Handler())
await new Promise((resolve) => program.listen(0, '127.0.0.1', resolve))

const platform = `@restatedev/restate-server-${process.platform}-${process.arch}`
const binary = createRequire(import.meta.url).resolve(`${platform}/bin/restate-server`)
const baseDir = mkdtempSync(join(tmpdir(), 'restate-bench-'))
const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()]
const server = spawn(binary, ['--no-logo', '--base-dir', baseDir, '--bind-ip', '127.0.0.1', '--listen-mode', 'tcp'], {
  cwd: baseDir,
  env: {
    ...process.env,
    RUST_LOG: 'off',
    RESTATE_BIND_PORT: String(node),
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    DO_NOT_TRACK: '1',
    RESTATE_DISABLE_TELEMETRY: 'true',
  },
  stdio: ['ignore', 'ignore', 'inherit'],
})
const adminUrl = `http://127.0.0.1:${admin}`

async function register() {
  const body = JSON.stringify({ uri: `http://127.0.0.1:${program.address().port}` })
  const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
  for (let tries = 0; tries < 100; tries++) {
    const answer = await fetch(`${adminUrl}/deployments`, options).catch(() => undefined)
    if (answer?.ok) return
    await pause(200)
  }
  throw new Error('Restate did not take the endpoint')
}

function end() {
  server.once('exit', () => {
    rmSync(baseDir, { recursive: true, force: true })
    process.exit(0)
  })
  server.kill('SIGTERM')
}

process.once('disconnect', end)
await register()
process.send({ ingressUrl: `http://127.0.0.1:${ingress}`, adminUrl })
