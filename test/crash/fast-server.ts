/**
 * A server whose queue, workflows and alerts have a clock that runs `HOMEPORT_TEST_CLOCK_SPEED` times as fast from the
 * moment `HOMEPORT_TEST_CLOCK_FROM` on, so that minutes pass in a test. After a restart the clock goes on where it would
 * be. `bundleProgram` makes a program of it.
 */
import { Command } from 'commander'
import { type Clock, systemClock } from '../../src/base/index.js'
import { addConfigFlags, configOf } from '../../src/cli/flags.js'
import { keepFilesPrivate, lockDataDir } from '../../src/config/index.js'
import { createApp } from '../../src/server/index.js'

const speed = Number(process.env.HOMEPORT_TEST_CLOCK_SPEED)
const from = Number(process.env.HOMEPORT_TEST_CLOCK_FROM)
const queueClock: Clock = {
  now: () => Math.round(from + (systemClock.now() - from) * speed),
  after: (delayMs, callback) => systemClock.after(delayMs / speed, callback),
}

const command = addConfigFlags(new Command('start')).action(async () => {
  const config = configOf(command)
  keepFilesPrivate()
  const lock = lockDataDir(config.dataDir)
  const onFailure = (): never => process.exit(1)
  const app = await createApp(config, { onFailure, queueClock })
  process.once('SIGTERM', () => {
    void app.stop().then(() => {
      lock.release()
      process.exit(0)
    })
  })
  await app.start()
})
// The first argument is the name of the command, as for the real program.
await command.parseAsync(process.argv.slice(3), { from: 'user' })
