# The table of layers: every folder, lowest first, and the folders it may include besides itself.
# The build links by it and the test style.layers reads every #include against it.
set(ACCRUE_LAYERS core kernels autograd nn optim dist data train)
set(ACCRUE_MAY_USE_core "")
set(ACCRUE_MAY_USE_kernels core)
set(ACCRUE_MAY_USE_autograd core kernels)
set(ACCRUE_MAY_USE_nn core autograd)
set(ACCRUE_MAY_USE_optim core kernels autograd)
set(ACCRUE_MAY_USE_dist core kernels)
set(ACCRUE_MAY_USE_data core)
set(ACCRUE_MAY_USE_train core kernels autograd nn optim dist data)

# Headers with a point or slash in their name that are not ours, and the only places for each. None
# is included by a public header.
set(ACCRUE_HOMES_immintrin kernels/cpu/)
set(ACCRUE_HOMES_cxxabi nn/)
set(ACCRUE_HOMES_mpi dist/mpi/ bench/)
foreach(posix IN ITEMS fcntl pthread sched spawn sys unistd)
  set(ACCRUE_HOMES_${posix} core/ kernels/cpu/ dist/mpi/ tests/ bench/ tools/)
endforeach()
set(ACCRUE_HOMES_Random123 core/)
set(ACCRUE_HOMES_Eigen tests/)
set(ACCRUE_HOMES_doctest tests/)
set(ACCRUE_HOMES_rapidcheck tests/)
set(ACCRUE_HOMES_nlohmann tests/ bench/)
set(ACCRUE_HOMES_CLI bench/)
set(ACCRUE_HOMES_fmt bench/ examples/ tools/)
set(ACCRUE_HOMES_cblas bench/)
set(ACCRUE_HOMES_torch bench/)
