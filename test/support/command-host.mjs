/**
 * Runs commands of a program one after the other in one process, so that Node.js and the sources are loaded once. The main
 * file is evaluated again for each command, with its own arguments, environment, folder and streams.
 */
import { Readable } from 'node:stream'

const DISPATCHER = Symbol.for('undici.globalDispatcher.1')

/** Replaces the variables of this process. */
function setEnvironment(env) {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
}

/** Collects what is written to a stream of this process until `end` is called. */
function collect(stream) {
  const parts = []
  const { write } = stream
  stream.write = (chunk, ...rest) => {
    parts.push(Buffer.from(chunk))
    rest.find((argument) => typeof argument === 'function')?.()
    return true
  }
  return () => {
    stream.write = write
    // Removes the listeners of the command, which would end with its process.
    stream.removeAllListeners('error')
    return Buffer.concat(parts).toString()
  }
}

/** The exit code of Node.js if the event loop is empty while the main file still awaits. */
const UNSETTLED = 13

/** Evaluates the main file. Resolves with the exit code once the program exits, or the event loop is empty. */
async function exitCodeOf(main, number) {
  const { exit } = process
  process.exitCode = undefined
  // Otherwise the channel to the tests would keep the event loop alive.
  process.channel.unref()
  let unsettled = UNSETTLED
  let drained
  try {
    return await new Promise((resolve, reject) => {
      process.exit = (code) => resolve(code ?? process.exitCode ?? 0)
      drained = () => resolve(unsettled ?? process.exitCode ?? 0)
      process.once('beforeExit', drained)
      import(`${main}?command=${number}`).then(() => (unsettled = undefined), reject)
    })
  } finally {
    process.off('beforeExit', drained)
    process.channel.ref()
    process.exit = exit
    process.exitCode = undefined
  }
}

/** Closes connections, as the end of a process does: the next command may find another server at the same port. */
async function closeConnections() {
  const dispatcher = globalThis[DISPATCHER]
  if (dispatcher === undefined) return
  globalThis[DISPATCHER] = new dispatcher.constructor()
  await dispatcher.destroy()
}

async function runCommand({ number, main, args, env, cwd, input }) {
  setEnvironment(env)
  process.chdir(cwd)
  process.argv = [process.execPath, main, ...args]
  Object.defineProperty(process, 'stdin', {
    configurable: true,
    value: Readable.from(input ? [Buffer.from(input)] : []),
  })
  const [stdout, stderr] = [collect(process.stdout), collect(process.stderr)]
  try {
    const code = await exitCodeOf(main, number)
    return { code, stdout: stdout(), stderr: stderr() }
  } finally {
    stdout()
    stderr()
    await closeConnections()
  }
}

process.on('message', async (command) => {
  process.send({ number: command.number, ...(await runCommand(command)) })
})
process.on('disconnect', () => process.exit())
