import { Redis } from 'iovalkey'
import { it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { ENGINE_PASSWORDS } from '../testing/engine.js'
import { RawClient, startRig } from '../testing/rig.js'

/** The observer's connection, the shared lane and the ready dedicated lanes. */
const CONNECTIONS = 4

/** Waits until CLIENT LIST matches `pattern`. The gateway answers it without the engine. */
async function untilListed(watcher: RawClient, pattern: RegExp): Promise<void> {
  const isListed = async (): Promise<boolean> => {
    watcher.received = ''
    watcher.send('CLIENT LIST\r\n')
    await waitFor(() => /cmd=client\|list [^\n]*\n\r\n$/.test(watcher.received), { what: 'the list' })
    return pattern.test(watcher.received)
  }
  await waitFor(isListed, { what: `${pattern} in the list of clients` })
}

it('a blocking command that begins a connection is not overtaken by a write that comes later', async () => {
  const rig = await startRig()
  const [blocker, writer, watcher] = [new RawClient(rig.port), new RawClient(rig.port), new RawClient(rig.port)]
  await Promise.all([blocker.login(), writer.login(), watcher.login()])
  await writer.send('PING\r\n').expect('+PONG\r\n')
  const login = { username: 'observer', password: ENGINE_PASSWORDS.observer }
  const observer = new Redis({ path: rig.engine.socketPath, ...login, enableReadyCheck: false })
  atCleanup(() => observer.disconnect())
  const connected = async (): Promise<number> =>
    Number(/connected_clients:(\d+)/.exec(await observer.info('clients'))?.[1])
  await waitFor(async () => (await connected()) >= CONNECTIONS, { what: 'the ready connections' })
  // Freeze the engine until both commands have been sent; then it reads them in order.
  rig.engine.signal('SIGSTOP')
  blocker.send('BLPOP queue 0\r\n')
  await untilListed(watcher, / flags=b /)
  writer.send('RPUSH queue x\r\nLLEN queue\r\n')
  await untilListed(watcher, / cmd=llen /)
  rig.engine.signal('SIGCONT')
  await writer.expect(':1\r\n:0\r\n')
  await blocker.expect('*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n')
})
