import { Select } from '@mantine/core'
import { RUN_STATES } from '../../../../src/contract/workflow/runs.js'
import { barField } from '../../components/filter-bar.js'
import { FilterField } from '../../components/filter-field.js'
import { given } from '../../lib/search.js'
import { FilterBar, MomentField } from './filters.js'
import type { RunSearch } from './search.js'
import { RUN_WORDS } from './words.js'

/** The filters of the list of runs. */
export function RunFilters({ filters, onChange }: { filters: RunSearch; onChange: (filters: RunSearch) => void }) {
  const set = (change: { readonly [Name in keyof RunSearch]?: RunSearch[Name] | undefined }) =>
    onChange(given({ ...filters, ...change }) as RunSearch)
  const { url, host, id, caller, flow, from, to, search } = filters
  return (
    <FilterBar
      isMoreUsed={[url, host, id, caller, flow, from, to].some((value) => value !== undefined)}
      more={
        <>
          <FilterField label="Whole URL" value={url} onChange={(next) => set({ url: next })} />
          <FilterField label="Host" width={140} value={host} onChange={(next) => set({ host: next })} />
          <FilterField label="Run ID" width={140} value={id} onChange={(next) => set({ id: next })} />
          <FilterField label="Caller" width={110} value={caller} onChange={(next) => set({ caller: next })} />
          <FilterField label="Flow-control key" width={130} value={flow} onChange={(next) => set({ flow: next })} />
          <MomentField label="From" value={from} onChange={(next) => set({ from: next })} />
          <MomentField label="To" value={to} onChange={(next) => set({ to: next })} />
        </>
      }
    >
      <Select
        aria-label="State"
        placeholder="All states"
        size="xs"
        {...barField(130)}
        clearable
        data={RUN_STATES.map((value) => ({ value, label: RUN_WORDS[value].title }))}
        value={filters.state ?? null}
        onChange={(value) => set({ state: RUN_STATES.find((known) => known === value) })}
      />
      <FilterField
        label="Search ids, URLs, errors"
        isSearch
        value={search}
        onChange={(next) => set({ search: next })}
      />
      <FilterField label="Label" width={110} value={filters.label} onChange={(label) => set({ label })} />
    </FilterBar>
  )
}
