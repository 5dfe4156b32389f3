import IconKey from 'icon:key'
import { useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { Panel } from '../../../components/page.js'
import { EmptyState } from '../../../components/states.js'
import classes from './browse.module.css'
import { Keys } from './key-panel.js'
import { OpenKey } from './open-key.js'
import { ValuePanel } from './value.js'

/** The key browser: keys on the left, the value of the selected one on the right. `database` is the name, for files. */
export function Browse({ plane, database }: { plane: DataPlane; database: string }) {
  const [chosen, setChosen] = useState<string | undefined>()
  const [gone, setGone] = useState<readonly string[]>([])
  return (
    <div className={classes.both}>
      {plane.canWrite ? (
        <Keys plane={plane} database={database} chosen={chosen} onChoose={setChosen} gone={gone} />
      ) : (
        <OpenKey plane={plane} onChoose={setChosen} />
      )}
      {chosen === undefined ? (
        <Panel>
          <EmptyState title="No key selected" icon={IconKey}>
            {plane.canWrite ? 'Select a key to see its value, or create one.' : 'Open a key by its name.'}
          </EmptyState>
        </Panel>
      ) : (
        <ValuePanel
          key={chosen}
          plane={plane}
          database={database}
          name={chosen}
          onGone={() => {
            setGone([chosen])
            setChosen(undefined)
          }}
        />
      )}
    </div>
  )
}
