import { NumberInput, Select, Stack, Switch, TextInput } from '@mantine/core'
import {
  changePlan,
  disableAutoUpgrade,
  disableEviction,
  disableProductionPack,
  enableAutoUpgrade,
  enableEviction,
  enableProductionPack,
  enableTls,
  renameDatabase,
  updateBudget,
} from '../../../../src/contract/databases/changes.js'
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'
import { api } from '../../api/client.js'
import { useChange, useTask } from '../../api/hooks.js'
import { useSettings } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { useDraft } from '../../components/use-draft.js'
import { BUDGET_FIELD, CREATE_RULES } from './create-form.js'
import { PlanLimits } from './plan-limits-view.js'
import { priceText } from './price.js'
import { DATABASE_READS, SaveForm, Setting } from './setting.js'
import { planOf, planTitle } from './words.js'

/** The name of a database. */
export function NameSetting({ database: { database_id, database_name } }: { database: DatabaseRecord }) {
  const name = useDraft(database_name)
  const rename = useChange(renameDatabase, { refreshes: DATABASE_READS, done: 'The name was changed.' })
  const problem = CREATE_RULES.name(name.value)
  return (
    <Setting title="Name" about="Host, port and credentials do not change.">
      <SaveForm
        isChanged={problem === null && name.value.trim() !== database_name}
        isPending={rename.isPending}
        onSave={() =>
          rename.mutate({ params: { id: database_id }, body: { name: name.value.trim() } }, { onSuccess: name.forget })
        }
      >
        <TextInput
          aria-label="Name"
          value={name.value}
          onChange={(event) => name.set(event.currentTarget.value)}
          error={problem}
        />
      </SaveForm>
    </Setting>
  )
}

/** The plan of a database. */
export function PlanSetting({ database }: { database: DatabaseRecord }) {
  const { plans } = useSettings()
  const present = planOf(database, plans)
  const { value: chosen, set: setChosen, forget } = useDraft(present?.plan)
  const change = useChange(changePlan, { refreshes: DATABASE_READS, done: 'The plan was changed.' })
  const offered = plans.find(({ plan }) => plan === chosen)
  return (
    <Setting
      title="Plan"
      about="The limits change without downtime or data loss. A plan that is too small for the data is refused."
    >
      <SaveForm
        isChanged={chosen !== undefined && chosen !== present?.plan}
        isPending={change.isPending}
        onSave={() =>
          chosen &&
          change.mutate({ params: { id: database.database_id }, body: { plan_name: chosen } }, { onSuccess: forget })
        }
        action="Change"
      >
        <Select
          aria-label="Plan"
          data={plans.map(({ plan }) => ({ value: plan, label: planTitle(plan) }))}
          value={chosen ?? null}
          onChange={(plan) => setChosen(plan ?? undefined)}
          description={offered ? <PlanLimits plan={offered} /> : undefined}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
        />
      </SaveForm>
    </Setting>
  )
}

/** The monthly budget of a database. */
export function BudgetSetting({ database }: { database: DatabaseRecord }) {
  const { database_id, budget } = database
  const plan = planOf(database, useSettings().plans)
  const { value, set: setValue, forget } = useDraft<number | ''>(budget === 0 ? '' : budget)
  const change = useChange(updateBudget, { refreshes: DATABASE_READS, done: 'The budget was changed.' })
  const problem = CREATE_RULES.budget(value)
  const wanted = value === '' ? 0 : value
  return (
    <Setting
      title="Monthly budget"
      about="At the limit, commands are refused until the month ends or the budget is raised."
    >
      <SaveForm
        isChanged={problem === null && wanted !== budget}
        isPending={change.isPending}
        onSave={() => change.mutate({ params: { id: database_id }, body: { budget: wanted } }, { onSuccess: forget })}
      >
        <NumberInput
          aria-label="Monthly budget"
          {...BUDGET_FIELD}
          description={plan === undefined || wanted === 0 ? undefined : `Price: ${priceText(plan)}`}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          value={value}
          onChange={(next) => setValue(typeof next === 'number' ? next : '')}
          error={problem}
        />
      </SaveForm>
    </Setting>
  )
}

/** The settings that are on or off. */
export function SwitchSettings({ database }: { database: DatabaseRecord }) {
  const params = { id: database.database_id }
  return (
    <Stack gap="lg">
      <Toggle
        label="Evict keys when the database is full"
        about="The least recently used keys are evicted; otherwise writes are refused, while reads and deletes still work."
        checked={database.eviction}
        set={(on) => api(on ? enableEviction : disableEviction, { params })}
      />
      <Toggle
        label="Upgrade the plan when the database outgrows it"
        about="For fixed plans."
        checked={database.auto_upgrade}
        set={(on) => api(on ? enableAutoUpgrade : disableAutoUpgrade, { params })}
      />
      <Toggle
        label="Production pack"
        about="Not on the Free plan. Daily backups are kept for three days."
        checked={database.prod_pack_enabled}
        set={(on) => api(on ? enableProductionPack : disableProductionPack, { params })}
      />
      <TlsSwitch database={database} />
    </Stack>
  )
}

interface ToggleProps {
  readonly label: string
  readonly about: string
  readonly checked: boolean
  readonly set: (on: boolean) => Promise<unknown>
}

function Toggle({ label, about, checked, set }: ToggleProps) {
  const change = useTask(set, { refreshes: DATABASE_READS, done: 'The setting was changed.' })
  return (
    <Switch
      label={label}
      description={about}
      checked={checked}
      disabled={change.isPending}
      onChange={(event) => change.mutate(event.currentTarget.checked)}
    />
  )
}

function TlsSwitch({ database: { tls, database_id, database_name } }: { database: DatabaseRecord }) {
  const ask = () =>
    confirm({
      title: `Enable TLS for ${database_name}`,
      text: 'Unencrypted connections are closed, and clients must connect with rediss://. TLS cannot be disabled again.',
      action: 'Enable TLS',
      onConfirm: () => api(enableTls, { params: { id: database_id } }),
      refreshes: DATABASE_READS,
    })
  return (
    <Switch
      label="TLS"
      description={tls ? 'The Redis port uses TLS. It cannot be disabled.' : 'The Redis port is not encrypted.'}
      checked={tls}
      disabled={tls}
      onChange={ask}
    />
  )
}
