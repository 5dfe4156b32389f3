import { Drawer } from '@mantine/core'
import { type ComponentProps, type ReactNode, useMemo, useState } from 'react'
import { useCanWrite } from '../../api/session.js'
import type { Column } from '../../components/data-table.js'
import { Page, Panel } from '../../components/page.js'
import { foundSoFar, PagedTable } from '../../components/paged-table.js'
import { NoMatches } from '../../components/states.js'
import { counted } from '../../lib/format.js'

/** Dead letters per page. */
export const LETTERS_PAGE = 100

/** A list of dead letters. */
type LetterPages<Letter> = ComponentProps<typeof PagedTable>['pages'] & {
  readonly data:
    | { readonly pages: readonly { readonly messages: readonly Letter[]; readonly searchedTo?: number }[] }
    | undefined
}

interface LettersPageProps<Letter> {
  readonly title: string
  readonly about: string
  readonly pages: LetterPages<Letter>
  readonly columns: (open: (letter: Letter) => void) => readonly Column<Letter>[]
  readonly filters: ReactNode
  /** Shown if the list is empty without filters. */
  readonly empty: ReactNode
  readonly isFiltered: boolean
  /** The actions on all listed dead letters. */
  readonly wholeSet: ReactNode
  readonly drawerTitle: string
  /** The drawer of an open dead letter. */
  readonly letter: (shown: {
    readonly letter: Letter
    readonly canWrite: boolean
    readonly onClose: () => void
  }) => ReactNode
}

/** A page of dead letters, of messages or of runs: a list with filters, and a drawer for one of them. */
export function LettersPage<Letter extends { readonly dlqId: string }>({
  title,
  about,
  pages,
  columns,
  filters,
  empty,
  isFiltered,
  wholeSet,
  drawerTitle,
  letter,
}: LettersPageProps<Letter>) {
  const canWrite = useCanWrite()
  const [open, setOpen] = useState<Letter | undefined>()
  const onClose = () => setOpen(undefined)
  const rows = useMemo(() => pages.data?.pages.flatMap(({ messages }) => messages), [pages.data])
  const toMs = pages.data?.pages.at(-1)?.searchedTo
  const shown = useMemo(() => columns(setOpen), [columns])
  return (
    <Page
      title={title}
      about={about}
      actions={canWrite && rows !== undefined && rows.length > 0 ? wholeSet : undefined}
    >
      <Panel flush title={title} actions={filters}>
        <PagedTable
          label={title}
          columns={shown}
          pages={pages}
          rows={rows}
          searched={
            !isFiltered || toMs === undefined ? undefined : foundSoFar(counted(rows?.length ?? 0, 'dead letter'), toMs)
          }
          rowKey={({ dlqId }) => dlqId}
          onOpen={setOpen}
          empty={isFiltered ? <NoMatches what={title.toLowerCase()} /> : empty}
        />
      </Panel>
      <Drawer opened={open !== undefined} onClose={onClose} position="right" size="lg" title={drawerTitle}>
        {open === undefined ? null : letter({ letter: open, canWrite, onClose })}
      </Drawer>
    </Page>
  )
}
