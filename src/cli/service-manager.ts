import { takeNotifySocket } from '../config/index.js'
import type { Io } from './io.js'
import { runToEnd } from './system-programs.js'

/** The state that systemd is notified of: see sd_notify(3). */
type ServiceState = 'READY=1' | 'STOPPING=1'

/**
 * Notifies systemd of the state of the server; does nothing if it was not started by a unit of `Type=notify`. Node cannot send
 * datagrams to Unix sockets, so systemd's own program sends them, which needs `NotifyAccess=all` in the unit.
 */
export class ServiceManager {
  readonly #socket = takeNotifySocket()
  readonly #io: Io
  /** Resolves when the previous notification has ended, so that notifications arrive in order. */
  #last: Promise<void> = Promise.resolve()

  constructor(io: Io) {
    this.#io = io
  }

  /** Whether a service manager started the server. If so, its journal keeps everything that the server prints. */
  get isPresent(): boolean {
    return this.#socket !== undefined
  }

  /** Never rejects. */
  notify(state: ServiceState): Promise<void> {
    this.#last = this.#last.then(() => this.#send(state))
    return this.#last
  }

  async #send(state: ServiceState): Promise<void> {
    if (this.#socket === undefined) return
    const failure = await runToEnd('systemd-notify', [state], { NOTIFY_SOCKET: this.#socket })
    if (failure === undefined) return
    this.#io.err(
      `systemd was not notified of ${state}: systemd-notify ${failure}. Install it, or set Type=exec in the unit.\n`,
    )
  }
}
