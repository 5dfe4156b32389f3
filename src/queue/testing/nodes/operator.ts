import * as nodesAdmin from '../../../cluster/transactions/nodes-admin.js'
import { HomeportError } from '../../../contract/errors/errors.js'
import type { Stage } from './stage.js'

/** The operator of the nodes: drains and resumes nodes, and removes nodes that are gone. */
export class Operator {
  readonly #stage: Pick<Stage, 'timeline' | 'memory'>

  constructor(stage: Pick<Stage, 'timeline' | 'memory'>) {
    this.#stage = stage
  }

  drain(names: readonly string[]): void {
    for (const name of names) this.#try(`drains ${name}`, () => this.#steer(name, 'draining'))
  }

  resume(names: readonly string[]): void {
    for (const name of names) this.#try(`resumes ${name}`, () => this.#steer(name, 'live'))
  }

  remove(name: string): void {
    this.#try(`removes ${name}`, () => this.#stage.memory.run(nodesAdmin.remove, { name }))
  }

  #steer(name: string, state: 'live' | 'draining'): void {
    this.#stage.memory.run(nodesAdmin.setNodeState, { name, state })
  }

  /** Runs an action of the operator. A refused action has no effect. */
  #try(what: string, act: () => void): void {
    try {
      act()
      this.#stage.timeline.note(`the operator ${what}`)
    } catch (error) {
      if (!(error instanceof HomeportError)) throw error
    }
  }
}
