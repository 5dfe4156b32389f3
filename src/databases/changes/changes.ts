import { emailKeyOf } from '../../accounts/index.js'
import { isIpRange } from '../../base/index.js'
import type { ChangePlanBody } from '../../contract/databases/changes.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import type { ChangeDeps } from '../deps.js'
import { planNameOf, readRegionsOf } from '../desired-engine.js'
import { newCredentials } from '../identity.js'
import type { DatabaseRow, DesiredChange } from '../lifecycle.js'
import { authorityProblem, nameProblems, readRegionProblems } from '../rules.js'
import * as databases from '../transactions/databases.js'
import * as databasesChanges from '../transactions/databases-changes.js'
import type { SettlesUnconfirmed } from '../unconfirmed-work.js'
import { Changer, refusalOf } from './changer.js'
import { Holds } from './holds.js'
import { type DesiredPlan, readDesiredPlan, resolvePlanChange } from './plan-change.js'

/** Brings the state of a database in line with its budget. */
export type BudgetListener = (databaseId: string) => Promise<void>

/**
 * What an owner can change about an existing database (reference redis 1.2). Every method rejects with
 * `database_not_found` for a database that the caller's account does not have, and with `database_busy` while another
 * long change is active.
 */
export class Changes {
  readonly #changer: Changer
  readonly #holds = new Holds()
  #onBudgetChange: BudgetListener = async () => undefined

  /** @param others settle other kinds of work that may have begun although the answer to the commit was lost. */
  constructor(deps: ChangeDeps, others: readonly SettlesUnconfirmed[]) {
    this.#changer = new Changer(deps, others)
  }

  /** Sets what is called after each change of a budget, plan or production pack. The change waits for it. */
  onBudgetChange(listener: BudgetListener): void {
    this.#onBudgetChange = listener
  }

  /** Waits until all active changes have settled. */
  stop(): Promise<void> {
    return this.#changer.stop()
  }

  /** Runs work on a database while no short change of it runs. */
  inTurn<Result>(databaseId: string, work: () => Promise<Result>): Promise<Result> {
    return this.#changer.inTurn(databaseId, work)
  }

  /** Publishes a row to the data plane that was changed in a turn. */
  publish(row: DatabaseRow): Promise<void> {
    return this.#changer.publish(row)
  }

  /** Resolves when clients may log in to the engines: not while the passwords are being changed. */
  untilReleased(databaseId: string): Promise<void> {
    return this.#holds.untilReleased(databaseId)
  }

  /** Makes the clients of a database wait while `work` runs. */
  holding<Result>(databaseId: string, work: () => Promise<Result>): Promise<Result> {
    return this.#holds.during(databaseId, work)
  }

  /** Renames a database. */
  async rename(caller: Caller, databaseId: string, newName: string): Promise<DatabaseRow> {
    const name = newName.trim()
    refuse(nameProblems(name, 'name'))
    const desired: DesiredChange = { set: { name }, action: 'Rename Database', details: { name } }
    return (await this.#changer.configure(caller, databaseId, desired)).row
  }

  /** Sets the monthly budget, US dollars; 0 means none. */
  async setBudget(caller: Caller, databaseId: string, budget: number): Promise<void> {
    const desired: DesiredChange = { set: { budget }, action: 'Change Database Budget', details: { budget } }
    await this.#changer.configure(caller, databaseId, desired)
    await this.#onBudgetChange(databaseId)
  }

  /** Suspends a database for its owner, or ends that suspension. A suspension by the budget is independent of it. */
  async setSuspended(caller: Caller, databaseId: string, on: boolean): Promise<void> {
    const desired: DesiredChange = {
      set: { suspended_by_owner: on ? 1 : 0 },
      action: on ? 'Suspend Database' : 'Resume Database',
      details: { by: 'owner' },
    }
    const { kind, row } = await this.#changer.configure(caller, databaseId, desired)
    if (!on && kind === 'same' && row.state === 'suspended') throw new HomeportError('budget_still_spent', {})
  }

  /** Turns auto upgrade on or off; rejects with `already_set` when nothing changes. */
  async setAutoUpgrade(caller: Caller, databaseId: string, on: boolean): Promise<void> {
    const desired: DesiredChange = {
      set: { auto_upgrade: on ? 1 : 0 },
      action: 'Change Database Auto Upgrade',
      details: { auto_upgrade: on },
    }
    const { kind } = await this.#changer.configure(caller, databaseId, desired)
    if (kind === 'changed') return
    throw new HomeportError('already_set', { feature: 'Auto upgrade', state: on ? 'enabled' : 'disabled' })
  }

  /** Sets the addresses and networks that may connect; an empty list allows all. */
  async setAllowList(caller: Caller, databaseId: string, ranges: readonly string[]): Promise<void> {
    refuse(
      ranges
        .filter((range) => !isIpRange(range))
        .map((range) => `\`allowed_ips\` takes addresses and networks such as 203.0.113.0/24; found "${range}".`)
        .slice(0, 5),
    )
    const desired: DesiredChange = {
      set: { allowed_ips: JSON.stringify(ranges) },
      action: 'Change Database Allow List',
      details: { allowed_ips: ranges },
    }
    await this.#changer.configure(caller, databaseId, desired)
  }

  /** Makes a change that depends on the current row; resolves when the running engines have taken it. */
  async reconfigure(caller: Caller, databaseId: string, decide: (row: DatabaseRow) => DesiredChange): Promise<void> {
    await this.#changer.reconfigureEngines(caller, databaseId, decide)
  }

  /** Sets what happens at the size limit: evict keys (true) or refuse writes (false). */
  async setEviction(caller: Caller, databaseId: string, on: boolean): Promise<void> {
    const desired: DesiredChange = {
      set: { eviction: on ? 1 : 0 },
      action: 'Change Database Eviction',
      details: { eviction: on },
    }
    await this.#changer.configureEngines(caller, databaseId, desired)
  }

  /**
   * Gives a database new credentials. The old ones are refused as soon as the change is committed. The data plane
   * recognises connections with old credentials by `loginEpoch` and closes them.
   */
  resetPassword(caller: Caller, databaseId: string): Promise<DatabaseRow> {
    const { password, restToken, readOnlyRestToken } = newCredentials()
    const desired: DesiredChange = {
      set: { password, rest_token: restToken, read_only_rest_token: readOnlyRestToken },
      action: 'Reset Database Password',
      details: {},
    }
    return this.#changer.inTurn(databaseId, async () => {
      await this.#unmodifiedRow(caller, databaseId)
      return this.#holds.during(databaseId, async () => {
        const { row } = await this.#changer.write(caller, databaseId, desired)
        await this.#changer.updateEngines(row, caller)
        return row
      })
    })
  }

  /**
   * Makes the port of a database speak TLS. The port switches before the commit: a server without a certificate then
   * refuses with `tls_not_configured`, and the port stays as it was.
   */
  enableTls(caller: Caller, databaseId: string): Promise<DatabaseRow> {
    const desired: DesiredChange = { set: { tls: 1 }, action: 'Enable Database TLS', details: {} }
    return this.#changer.inTurn(databaseId, async () => {
      const before = await this.#unmodifiedRow(caller, databaseId)
      if (before.tls === 1) return before
      const { directory, onServing } = this.#changer.deps
      try {
        directory.put({ ...before, tls: 1 })
        await onServing(databaseId)
        return (await this.#changer.write(caller, databaseId, desired)).row
      } catch (error) {
        await this.#changer.publish(before, caller)
        throw error
      }
    })
  }

  /** Makes the TLS port require client certificates of this authority (PEM); null requires none. */
  setClientAuthority(caller: Caller, databaseId: string, authority: string | null): Promise<DatabaseRow> {
    const problem = authority === null ? undefined : authorityProblem(authority)
    refuse(problem === undefined ? [] : [problem])
    const desired: DesiredChange = {
      set: { client_authority: authority },
      action: 'Change Database Mutual TLS',
      details: { client_certificates: authority !== null },
    }
    return this.#changer.inTurn(databaseId, async () => {
      const { tls } = await this.#unmodifiedRow(caller, databaseId)
      if (tls === 0 && authority !== null) throw new HomeportError('mutual_tls_needs_tls', {})
      return (await this.#changer.write(caller, databaseId, desired)).row
    })
  }

  /** Changes the plan; the running engines take its limits. */
  async changePlan(caller: Caller, databaseId: string, body: ChangePlanBody): Promise<void> {
    await this.#changePlanTo(caller, databaseId, readDesiredPlan(databaseId, body))
  }

  /** Turns the production pack on or off. */
  async setProductionPack(caller: Caller, databaseId: string, on: boolean): Promise<void> {
    await this.#changePlanTo(caller, databaseId, { productionPack: on })
  }

  /** Sets the read regions; resolves when exactly these replicate. */
  async setReadRegions(caller: Caller, databaseId: string, readRegions: readonly string[]): Promise<void> {
    const { plans, placement } = this.#changer.deps
    await placement.checkRegions(readRegions)
    await this.#changer.transform(caller, databaseId, 'updating_regions', async (row) => {
      const { platform, primary_region: primaryRegion } = row
      refuse(readRegionProblems({ readRegions, platform, primaryRegion, plan: planNameOf(row) }, plans))
      return {
        set: { read_regions: JSON.stringify(readRegions) },
        action: 'Change Database Regions',
        details: { from: readRegionsOf(row), read_regions: readRegions },
      }
    })
  }

  /** Moves a database to a team in which the caller may manage databases. */
  async moveToTeam(caller: Caller, databaseId: string, teamId: string): Promise<void> {
    // Only the key of a team's owner proves who the caller is: an admin can make keys for the e-mail of any member.
    if (caller.role !== undefined && caller.role !== 'owner') {
      const allowed = 'the owner of the team that has the database'
      throw new HomeportError('team_forbidden', { role: caller.role, allowed })
    }
    const desired: DesiredChange = { set: {}, action: 'Move Database', details: { team_id: teamId } }
    const { deps } = this.#changer
    const { freeAccountDatabases: free, paidAccountDatabases: paid } = deps.settings
    const own = deps.databaseLimitOf?.(teamId)
    await this.#changer.inTurn(databaseId, async () => {
      const audit = this.#changer.auditOf(caller, databaseId, desired)
      const mover = { accountId: caller.accountId, emailKey: emailKeyOf(caller.email) }
      const args = {
        ...mover,
        databaseId,
        home: deps.settings.node,
        teamId,
        limits: own === undefined ? { free, paid } : { free: own, paid: own },
        audit,
      }
      const outcome = await deps.store.run(databasesChanges.moveToTeam, args)
      if (outcome.kind === 'changed') await this.#changer.publish(outcome.database, caller)
      else throwRefusedMove(outcome, args)
    })
  }

  async #changePlanTo(caller: Caller, databaseId: string, desired: DesiredPlan): Promise<void> {
    const { plans, fleet, clock } = this.#changer.deps
    await this.#changer.transform(caller, databaseId, 'changing_plan', (row) =>
      resolvePlanChange(row, desired, {
        plans,
        accountType: caller.accountType,
        nowMs: clock.now(),
        usedBytes: () => fleet.usedBytes(databaseId),
      }),
    )
    await this.#onBudgetChange(databaseId)
  }

  /** The row of a database without an active long change. */
  async #unmodifiedRow(caller: Caller, databaseId: string): Promise<DatabaseRow> {
    const args = { accountId: caller.accountId, databaseId }
    const row = await this.#changer.deps.store.run(databases.get, args)
    if (!row) throw new HomeportError('database_not_found', { databaseId })
    if (row.modifying_state !== '') throw refusalOf({ kind: 'busy', modifyingState: row.modifying_state }, databaseId)
    return row
  }
}

function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw new HomeportError('invalid_request', { problem: problems.join(' ') })
}

type RefusedMove = Exclude<databasesChanges.MoveOutcome, { kind: 'changed' }>

function throwRefusedMove(outcome: RefusedMove, args: databasesChanges.MoveArgs): void {
  switch (outcome.kind) {
    case 'same':
      return
    case 'no_such_team':
      throw new HomeportError('team_not_found', { teamId: args.teamId })
    case 'role_refused':
      throw new HomeportError('team_forbidden', { role: outcome.role, allowed: 'the owner, an admin or a dev' })
    case 'limit_reached':
      throw new HomeportError('database_limit', {
        limit: args.limits[outcome.accountType],
        accountType: outcome.accountType,
      })
    default:
      throw refusalOf(outcome, args.databaseId)
  }
}
