import { MultiSelect, Textarea } from '@mantine/core'
import { MAX_ALLOWED_IPS, updateAllowList, updateRegions } from '../../../../src/contract/databases/changes.js'
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'
import { useChange } from '../../api/hooks.js'
import { useSettings } from '../../api/session.js'
import { useDraft } from '../../components/use-draft.js'
import { readRegionsFor } from './create-form.js'
import { DATABASE_READS, SaveForm, Setting } from './setting.js'
import { placeOf } from './words.js'

/** The read regions of a database. */
export function RegionsSetting({
  database: { database_id, primary_region, read_regions },
}: {
  database: DatabaseRecord
}) {
  const chosen = useDraft(read_regions)
  const change = useChange(updateRegions, { refreshes: DATABASE_READS, done: 'The read regions were changed.' })
  const { regions } = useSettings()
  const choices = readRegionsFor(primary_region, regions)
  const isChanged = [...chosen.value].sort().join() !== [...read_regions].sort().join()
  return (
    <Setting
      title="Read regions"
      about="The primary region keeps serving during the change; no write is lost. GCP regions have no read regions."
    >
      <SaveForm
        isChanged={isChanged}
        isPending={change.isPending}
        onSave={() =>
          change.mutate(
            { params: { id: database_id }, body: { read_regions: chosen.value } },
            { onSuccess: chosen.forget },
          )
        }
      >
        <MultiSelect
          aria-label="Read regions"
          size="sm"
          searchable
          disabled={choices.length === 0}
          placeholder={chosen.value.length === 0 ? 'None' : ''}
          data={choices.map((region) => ({ value: region, label: `${region} · ${placeOf(region)}` }))}
          value={chosen.value}
          onChange={chosen.set}
        />
      </SaveForm>
    </Setting>
  )
}

const linesOf = (text: string): string[] =>
  text
    .split(/[\s,]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')

/** The allow list of a database. */
export function AllowListSetting({ database: { database_id, allowed_ip_ranges } }: { database: DatabaseRecord }) {
  const text = useDraft(allowed_ip_ranges.join('\n'))
  const change = useChange(updateAllowList, { refreshes: DATABASE_READS, done: 'The allow list was changed.' })
  const lines = linesOf(text.value)
  const problem = lines.length > MAX_ALLOWED_IPS ? `At most ${MAX_ALLOWED_IPS}, found ${lines.length}` : null
  return (
    <Setting
      title="Allow list"
      about="IP addresses and networks that may connect, one per line, such as 203.0.113.0/24. Empty: all may connect."
    >
      <SaveForm
        isChanged={problem === null && lines.join() !== allowed_ip_ranges.join()}
        isPending={change.isPending}
        onSave={() =>
          change.mutate({ params: { id: database_id }, body: { allowed_ips: lines } }, { onSuccess: text.forget })
        }
      >
        <Textarea
          aria-label="Allow list"
          autosize
          minRows={2}
          maxRows={8}
          placeholder="All addresses"
          value={text.value}
          onChange={(event) => text.set(event.currentTarget.value)}
          error={problem}
        />
      </SaveForm>
    </Setting>
  )
}
