/**
 * Threads whose program is sources that no build has bundled: in tests and during development. Sources are bundled and
 * compiled once per process.
 */
import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'
import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  type TransferListItem,
  Worker,
} from 'node:worker_threads'
import type { FromThread, ThreadSettings, ToThread } from './protocol.js'

/** What a store needs of its thread: a `Worker`, or one that has run for other stores before. */
export interface StoreThread extends EventEmitter {
  postMessage(message: ToThread, transferList?: readonly TransferListItem[]): void
}

/** A thread that runs one program after the other. */
interface SharedWorker {
  readonly worker: Worker
  programs: number
}

/** A bundle of sources with their packages, V8's code cache for it, and idle threads that can run it again. */
interface Bundle {
  readonly code: string
  readonly compiled: Uint8Array
  readonly idle: SharedWorker[]
}

/** Idle threads that are kept; others end. Few tests have that many stores open. */
const IDLE_AT_MOST = 6
/** A thread keeps the modules of its programs, about a megabyte each, because SQLite's objects must not be collected. */
const PROGRAMS_AT_MOST = 40

/** Starts a thread that runs the program once. */
export function startFromSources(
  urls: readonly string[],
  workerData: object,
  transferList: readonly TransferListItem[],
): Worker {
  const { code, compiled } = bundleOf(urls)
  return new Worker(RUN_ONCE, {
    workerData: { code, compiled, workerData },
    transferList: [...transferList],
    eval: true,
  })
}

/**
 * Runs the program of a store thread, with modules of its own, on a reusable thread: when the program has closed its port,
 * the thread can run another one. A new thread costs 60 ms of processor time, a reused one 5 ms, and tests open thousands of
 * stores. A program that fails ends the thread.
 */
export function lendThread(urls: readonly string[], settings: ThreadSettings): StoreThread {
  const bundle = bundleOf(urls)
  const shared = bundle.idle.pop() ?? newShared(bundle)
  shared.programs++
  shared.worker.ref()
  return new LentThread(shared.worker, settings, (isReusable) => takeBack(bundle, shared, isReusable))
}

function newShared({ code, compiled }: Bundle): SharedWorker {
  return { worker: new Worker(RUN_MANY, { workerData: { code, compiled }, eval: true }), programs: 0 }
}

function takeBack({ idle }: Bundle, shared: SharedWorker, isReusable: boolean): void {
  shared.worker.unref()
  if (isReusable && shared.programs < PROGRAMS_AT_MOST && idle.length < IDLE_AT_MOST) idle.push(shared)
  else void shared.worker.terminate()
}

/** A thread as one store sees it: its events are those of a `Worker` that runs this store's program only. */
class LentThread extends EventEmitter implements StoreThread {
  readonly #worker: Worker
  readonly #port: MessagePort
  readonly #takeBack: (isReusable: boolean) => void
  /** A program that has not started may have left its file open. */
  #hasStarted = true

  constructor(worker: Worker, settings: ThreadSettings, takeBack: (isReusable: boolean) => void) {
    super()
    const { port1, port2 } = new MessageChannel()
    this.#worker = worker
    this.#port = port1
    this.#takeBack = takeBack
    port1.on('message', (message: FromThread) => this.#receive(message))
    worker.on('message', this.#over).on('error', this.#failed).on('exit', this.#ended)
    worker.postMessage({ workerData: settings, port: port2 }, [port2])
  }

  postMessage(message: ToThread, transferList: readonly TransferListItem[] = []): void {
    this.#port.postMessage(message, transferList)
  }

  #receive(message: FromThread): void {
    if (message.kind === 'failed') this.#hasStarted = false
    this.emit('message', message)
  }

  /** The program has closed its port. */
  readonly #over = (): void => {
    this.#ended()
    this.#takeBack(this.#hasStarted)
  }

  readonly #failed = (error: Error): void => {
    this.#drain()
    this.emit('error', error)
  }

  readonly #ended = (): void => {
    this.#worker.off('message', this.#over).off('error', this.#failed).off('exit', this.#ended)
    this.#drain()
    this.#port.close()
    this.emit('exit', 0)
  }

  /** Answers of a program may arrive after the message that it has ended, because that message uses another port. */
  #drain(): void {
    for (let next = receiveMessageOnPort(this.#port); next; next = receiveMessageOnPort(this.#port)) {
      this.#receive(next.message)
    }
  }
}

/** Compiling a bundle costs a thread 50 ms of processor time; with V8's code cache, 5 ms. */
const COMPILE = `
const threads = require('node:worker_threads')
const { code, compiled, workerData } = threads.workerData
const script = new (require('node:vm').Script)(code, { filename: 'thread from sources', cachedData: compiled })
`

const RUN_ONCE = `${COMPILE}
threads.workerData = workerData
script.runInThisContext()
`

/** `kept` holds the ports, which refer to the modules of their programs: these must not be collected. */
const RUN_MANY = `${COMPILE}
const parent = threads.parentPort
const kept = []
parent.on('message', (program) => {
  kept.push(program.port)
  program.port.once('close', () => parent.postMessage('over'))
  threads.parentPort = program.port
  threads.workerData = program.workerData
  script.runInThisContext()
})
`

const bundles = new Map<string, Bundle>()

/**
 * Bundles sources into one script. A loader that compiles file by file would cost each thread about a second of processor
 * time; this costs a tenth of a second, once per process.
 */
function bundleOf(urls: readonly string[]): Bundle {
  const contents = urls.map((url) => `import ${JSON.stringify(fileURLToPath(url))}`).join('\n')
  const known = bundles.get(contents)
  if (known) return known
  const code = bundle(contents)
  const made = { code, compiled: new Script(code).createCachedData(), idle: [] }
  bundles.set(contents, made)
  return made
}

function bundle(contents: string): string {
  // Loaded only here, because an installed Homeport does not have it.
  const esbuild: typeof import('esbuild') = createRequire(import.meta.url)('esbuild')
  // Without this, the script would resolve packages from the working directory.
  const js = `globalThis.require = require('node:module').createRequire(${JSON.stringify(import.meta.url)})`
  const { outputFiles } = esbuild.buildSync({
    stdin: { contents, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    bundle: true,
    external: ['better-sqlite3'],
    define: { 'import.meta.url': JSON.stringify(import.meta.url) },
    platform: 'node',
    format: 'cjs',
    write: false,
  })
  // In a function, so that a thread that runs it again has new modules.
  return `${js};(() => {\n${outputFiles.map((file) => file.text).join('')}\n})()`
}
