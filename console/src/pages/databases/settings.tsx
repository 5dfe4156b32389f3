import { Stack } from '@mantine/core'
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'
import { useCanWrite } from '../../api/session.js'
import { Panel } from '../../components/page.js'
import { EmptyState } from '../../components/states.js'
import { AllowListSetting, RegionsSetting } from './settings-access.js'
import { DangerZone } from './settings-danger.js'
import { BudgetSetting, NameSetting, PlanSetting, SwitchSettings } from './settings-plan.js'

/** The settings of a database. */
export function SettingsTab({ database }: { database: DatabaseRecord }) {
  if (!useCanWrite()) {
    return (
      <Panel>
        <EmptyState title="This key is read-only">
          Sign in with a key that has full access to change the database.
        </EmptyState>
      </Panel>
    )
  }
  return (
    <Stack gap="lg">
      <Panel title="Name, plan and budget">
        <Stack gap="xl">
          <NameSetting database={database} />
          <PlanSetting database={database} />
          <BudgetSetting database={database} />
        </Stack>
      </Panel>
      <Panel title="Behaviour">
        <SwitchSettings database={database} />
      </Panel>
      <Panel title="Regions and access">
        <Stack gap="xl">
          <RegionsSetting database={database} />
          <AllowListSetting database={database} />
        </Stack>
      </Panel>
      <DangerZone database={database} />
    </Stack>
  )
}
